import { useQuery } from '@tanstack/react-query';
import { Check, LoaderCircle } from 'lucide-react';
import { useState } from 'react';
import { apiResult } from '../api/http';
import type { Agent, PairingCode } from '../generated/api';
import { agentPath, navigate } from '../router';
import { Problem } from '../settings/Block';
import { useSubmit } from '../settings/useSubmit';
import { text } from '../text';
import { Button } from '../ui/button';
import { Dialog } from '../ui/dialog';
import { Choice, Field } from '../ui/field';
import { ShownOnce } from '../ui/shown-once';
import { clock } from '../ui/time';
import { gatewayCommand } from './labels';

type Kind = (typeof KINDS)[number]['value'];

const KINDS = [
  { value: 'claude', label: text.agents.addKinds.claude },
  { value: 'acp:codex', label: text.agents.addKinds.codex },
  { value: 'acp:gemini', label: text.agents.addKinds.gemini },
  { value: 'acp:opencode', label: text.agents.addKinds.opencode },
  { value: 'command', label: text.agents.addKinds.command },
] as const;

const POLL_INTERVAL_MS = 2000;

/** Shows the setup commands for the agent's machine, and waits until the agent is online. */
export function AddAgent({ agents, onClose }: { agents: Agent[]; onClose: () => void }) {
  // Agents when the dialog was opened. The agent that the dialog waits for is not among them.
  const [knownAgents] = useState(agents);
  const [name, setName] = useState('');
  const [kind, setKind] = useState<Kind>('claude');
  const [program, setProgram] = useState('');
  const [code, setCode] = useState<PairingCode>();
  const { attempt, problem, isBusy } = useSubmit();
  const createCode = () => attempt(async () => setCode(await apiResult<PairingCode>('POST', '/api/pairing')));
  const isReady = name.trim() !== '' && (kind !== 'command' || program.trim() !== '');
  return (
    <Dialog open onClose={onClose} title={text.agents.add} lead={text.agents.addLead} className="w-[min(34rem,calc(100vw-2rem))]">
      {code === undefined ? (
        <form
          className="space-y-4"
          onSubmit={(event) => {
            event.preventDefault();
            void createCode();
          }}
        >
          <Field
            label={text.agents.name}
            placeholder={text.agents.namePlaceholder}
            value={name}
            maxLength={100}
            autoFocus
            required
            onChange={({ target }) => setName(target.value)}
          />
          <Choice label={text.agents.kind} value={kind} options={[...KINDS]} onChange={setKind} />
          {kind === 'command' && (
            <Field
              label={text.agents.program}
              hint={text.agents.programHint}
              className="font-mono"
              value={program}
              onChange={({ target }) => setProgram(target.value)}
            />
          )}
          <Problem>{problem}</Problem>
          <div className="flex justify-end gap-2">
            <Button variant="plain" onClick={onClose}>
              {text.cancel}
            </Button>
            <Button variant="primary" type="submit" disabled={isBusy || !isReady}>
              {text.agents.showCommands}
            </Button>
          </div>
        </form>
      ) : (
        <Commands code={code} command={gatewayCommand(name.trim(), kind, program.trim())} />
      )}
      {code !== undefined && <ConnectionStatus name={name.trim()} knownAgents={knownAgents} onClose={onClose} />}
    </Dialog>
  );
}

function Commands({ code, command }: { code: PairingCode; command: string }) {
  return (
    <ol className="space-y-4 text-sm">
      <li className="space-y-1.5">
        <p>{text.agents.stepPair(clock(Date.parse(code.expiresAt)))}</p>
        <ShownOnce words={code.command} />
      </li>
      <li className="space-y-1.5">
        <p>{text.agents.stepHost}</p>
        <ShownOnce words={command} />
      </li>
    </ol>
  );
}

function ConnectionStatus({ name, knownAgents, onClose }: { name: string; knownAgents: Agent[]; onClose: () => void }) {
  const { data: agents = [] } = useQuery({
    queryKey: ['agents'],
    queryFn: () => apiResult<Agent[]>('GET', '/api/agents'),
    refetchInterval: POLL_INTERVAL_MS,
  });
  const isNew = (agent: Agent) => !knownAgents.some((other) => other.id === agent.id && other.status !== 'offline');
  const connectedAgent = agents.find((agent) => agent.name === name && agent.status !== 'offline' && isNew(agent));
  return (
    <div role="status" className="mt-5 flex items-center gap-3 rounded-xl bg-code px-4 py-3 text-sm">
      {connectedAgent === undefined ? (
        <>
          <LoaderCircle size={16} aria-hidden className="animate-spin text-faint" />
          {text.agents.waiting(name)}
        </>
      ) : (
        <>
          <Check size={16} aria-hidden className="text-accent" />
          <span className="flex-1">{text.agents.connected(name)}</span>
          <Button
            size="small"
            variant="primary"
            onClick={() => {
              onClose();
              navigate(agentPath(connectedAgent.id));
            }}
          >
            {text.agents.view}
          </Button>
        </>
      )}
    </div>
  );
}
