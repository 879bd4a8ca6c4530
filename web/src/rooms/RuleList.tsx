import { useQuery, useQueryClient } from '@tanstack/react-query';
import { apiRequest, apiResult } from '../api/http';
import type { RoomEntry } from '../chat/state';
import type { ApprovalRule } from '../generated/api';
import { text } from '../text';
import { Button } from '../ui/button';
import { Section } from './Section';

/** Tools that agents may use in this room without approval. */
export function RuleList({ room }: { room: RoomEntry }) {
  const queries = useQueryClient();
  const path = `/api/rooms/${room.id}/approval-rules`;
  const { data: rules } = useQuery({ queryKey: ['rules', room.id], queryFn: () => apiResult<ApprovalRule[]>('GET', path) });
  if (!room.members.some((member) => member.memberType === 'agent')) return null;
  const revoke = async ({ agentId, toolName }: ApprovalRule) => {
    await apiRequest('DELETE', `${path}?${new URLSearchParams({ agentId, toolName })}`);
    await queries.invalidateQueries({ queryKey: ['rules', room.id] });
  };
  const nameOf = (id: string) => room.members.find((member) => member.memberId === id)?.displayName ?? id;
  return (
    <Section title={text.details.rules}>
      {(rules ?? []).length === 0 && <p className="text-sm text-faint">{text.details.noRules}</p>}
      <ul className="space-y-1">
        {rules?.map((rule) => (
          <li key={`${rule.agentId} ${rule.toolName}`} className="flex items-center gap-2 text-sm">
            <span className="min-w-0 flex-1 truncate">
              <span className="font-medium">{nameOf(rule.agentId)}</span> {rule.toolName}
            </span>
            <Button size="small" variant="plain" onClick={() => void revoke(rule)}>
              {text.details.revoke}
            </Button>
          </li>
        ))}
      </ul>
    </Section>
  );
}
