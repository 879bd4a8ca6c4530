import { useQuery } from '@tanstack/react-query';
import { apiResult } from '../api/http';
import type { TurnDelivery } from '../generated/api';
import { text } from '../text';
import { Avatar } from '../ui/avatar';
import { Dialog } from '../ui/dialog';

/** Runs that a message triggered, each with its status and reason. */
export function WhyDialog({ messageId, onClose }: { messageId: string; onClose: () => void }) {
  const { data: deliveries } = useQuery({
    queryKey: ['deliveries', messageId],
    queryFn: () => apiResult<TurnDelivery[]>('GET', `/api/messages/${messageId}/deliveries`),
    staleTime: 0,
  });
  return (
    <Dialog open onClose={onClose} title={text.timeline.why} lead={text.why.lead}>
      {deliveries?.length === 0 && <p className="text-sm text-soft">{text.why.none}</p>}
      <ul className="space-y-3">
        {deliveries?.map((delivery) => (
          <li key={delivery.runId} className="flex gap-3">
            <Avatar id={delivery.agentId} name={delivery.agentName} kind="agent" size={32} />
            <div className="text-sm">
              <p>
                <span className="font-semibold">{delivery.agentName}</span>{' '}
                {text.why.status[delivery.status] ?? delivery.status}
              </p>
              {delivery.reason !== undefined && <p className="text-soft">{delivery.reason.replaceAll('_', ' ')}</p>}
              <p className="text-xs text-faint">
                {delivery.routingMode === 'direct' ? text.why.direct : text.why.broadcast}
              </p>
            </div>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
