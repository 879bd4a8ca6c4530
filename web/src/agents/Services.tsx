import { useQuery, useQueryClient } from '@tanstack/react-query';
import { MoreHorizontal, Pencil, Plus, Power, Stethoscope, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { apiRequest, apiResult } from '../api/http';
import type { ServiceAgent, ServiceAgentBody, ServiceValidation } from '../generated/api';
import { agentPath } from '../router';
import { Block, Problem } from '../settings/Block';
import { useSubmit } from '../settings/useSubmit';
import { text } from '../text';
import { Avatar } from '../ui/avatar';
import { Button, IconButton } from '../ui/button';
import { DialogBoundary, ConfirmDialog } from '../ui/dialog';
import { Link } from '../ui/link';
import { Menu, MenuItem, MenuLine } from '../ui/menu';
import { ServiceDialog } from './ServiceDialog';

/** For admins: models that the hub calls itself. All users can add them to rooms. */
export function Services() {
  const [isAdding, setAdding] = useState(false);
  const { data: services } = useQuery({
    queryKey: ['services'],
    queryFn: () => apiResult<ServiceAgent[]>('GET', '/api/service-agents'),
  });
  return (
    <Block title={text.services.heading} lead={text.services.lead}>
      {services !== undefined && services.length > 0 && (
        <ul aria-label={text.services.heading} className="divide-y rounded-xl border">
          {services.map((service) => (
            <ServiceRow key={service.id} service={service} />
          ))}
        </ul>
      )}
      <Button onClick={() => setAdding(true)}>
        <Plus size={16} />
        {text.services.add}
      </Button>
      {isAdding && (
        <DialogBoundary onClose={() => setAdding(false)}>
          <ServiceDialog onClose={() => setAdding(false)} />
        </DialogBoundary>
      )}
    </Block>
  );
}

function ServiceRow({ service }: { service: ServiceAgent }) {
  const queries = useQueryClient();
  const { attempt, problem, isBusy } = useSubmit();
  const [open, setOpen] = useState<'edit' | 'remove'>();
  const [testResult, setTestResult] = useState<ServiceValidation>();
  const isActive = service.status === 'active';
  const path = `/api/service-agents/${encodeURIComponent(service.id)}`;
  const refresh = async () => {
    await queries.invalidateQueries({ queryKey: ['services'] });
    await queries.invalidateQueries({ queryKey: ['agents'] });
  };
  const toggle = () =>
    attempt(async () => {
      await apiRequest('PUT', path, { status: isActive ? 'inactive' : 'active' } satisfies ServiceAgentBody);
      await refresh();
    });
  const remove = () =>
    attempt(async () => {
      await apiRequest('DELETE', path);
      await refresh();
    });
  const testConnection = () =>
    attempt(async () => {
      setTestResult(undefined);
      setTestResult(await apiResult<ServiceValidation>('POST', `${path}/validate`));
    });
  return (
    <li aria-label={service.name} className="px-4 py-3">
      <div className="flex items-center gap-3.5">
        <Avatar id={service.id} name={service.name} kind="agent" size={36} />
        <Link href={agentPath(service.id)} className="min-w-0 flex-1">
          <span className="block truncate text-sm font-semibold">{service.name}</span>
          <span className="block truncate text-xs text-faint">
            {[text.services.kinds[service.type], service.config.model].join(' · ')}
          </span>
        </Link>
        <span className="shrink-0 text-xs text-soft">{text.services.status[service.status]}</span>
        <Menu
          trigger={
            <IconButton label={`${text.more}: ${service.name}`}>
              <MoreHorizontal size={16} />
            </IconButton>
          }
        >
          <MenuItem icon={<Pencil size={15} />} onSelect={() => setOpen('edit')}>
            {text.services.edit}
          </MenuItem>
          <MenuItem icon={<Stethoscope size={15} />} onSelect={() => void testConnection()}>
            {text.services.test}
          </MenuItem>
          <MenuItem icon={<Power size={15} />} onSelect={() => void toggle()}>
            {isActive ? text.services.pause : text.services.resume}
          </MenuItem>
          <MenuLine />
          <MenuItem danger icon={<Trash2 size={15} />} onSelect={() => setOpen('remove')}>
            {text.agents.remove}
          </MenuItem>
        </Menu>
      </div>
      <div role="status" className="text-sm empty:hidden">
        {testResult !== undefined && (
          <p className={testResult.valid ? 'mt-2 text-accent' : 'mt-2 text-danger'}>
            {testResult.valid ? text.services.testPassed : text.services.testFailed(testResult.error ?? '')}
          </p>
        )}
      </div>
      <Problem>{problem}</Problem>
      {open === 'edit' && (
        <DialogBoundary onClose={() => setOpen(undefined)}>
          <ServiceDialog service={service} onClose={() => setOpen(undefined)} />
        </DialogBoundary>
      )}
      {open === 'remove' && (
        <ConfirmDialog
          title={text.agents.remove}
          lead={text.agents.removeConfirm(service.name)}
          isBusy={isBusy}
          onConfirm={() => void remove()}
          onClose={() => setOpen(undefined)}
        />
      )}
    </li>
  );
}
