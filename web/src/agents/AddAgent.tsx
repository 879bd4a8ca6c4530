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

const LOOK_EVERY_MS = 2000;

/** Shows what to type on the machine where the agent is to live, and waits until it is there. */
export function AddAgent({ agents, onClose }: { agents: Agent[]; onClose: () => void }) {
  // As it was when the window was opened: what is there now may be what was waited for.
  const [known] = useState(agents);
  const [name, setName] = useState('');
  const [kind, setKind] = useState<Kind>('claude');
  const [program, setProgram] = useState('');
  const [code, setCode] = useState<PairingCode>();
  const { attempt, problem, isBusy } = useSubmit();
  const make = () => attempt(async () => setCode(await apiResult<PairingCode>('POST', '/api/pairing')));
  const isReady = name.trim() !== '' && (kind !== 'command' || program.trim() !== '');
  return (
    <Dialog open onClose={onClose} title={text.agents.add} lead={text.agents.addLead} className="w-[min(34rem,calc(100vw-2rem))]">
      {code === undefined ? (
        <form
          className="space-y-4"
          onSubmit={(event) => {
            event.preventDefault();
            void make();
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
            <Button look="plain" onClick={onClose}>
              {text.cancel}
            </Button>
            <Button look="primary" type="submit" disabled={isBusy || !isReady}>
              {text.agents.showCommands}
            </Button>
          </div>
        </form>
      ) : (
        <Commands code={code} command={gatewayCommand(name.trim(), kind, program.trim())} />
      )}
      {code !== undefined && <Arrival name={name.trim()} known={known} onClose={onClose} />}
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

function Arrival({ name, known, onClose }: { name: string; known: Agent[]; onClose: () => void }) {
  const { data: agents = [] } = useQuery({
    queryKey: ['agents'],
    queryFn: () => apiResult<Agent[]>('GET', '/api/agents'),
    refetchInterval: LOOK_EVERY_MS,
  });
  const isNew = (agent: Agent) => !known.some((one) => one.id === agent.id && one.status !== 'offline');
  const arrived = agents.find((agent) => agent.name === name && agent.status !== 'offline' && isNew(agent));
  return (
    <div role="status" className="mt-5 flex items-center gap-3 rounded-xl bg-code px-4 py-3 text-sm">
      {arrived === undefined ? (
        <>
          <LoaderCircle size={16} aria-hidden className="animate-spin text-faint" />
          {text.agents.waiting(name)}
        </>
      ) : (
        <>
          <Check size={16} aria-hidden className="text-accent" />
          <span className="flex-1">{text.agents.arrived(name)}</span>
          <Button
            size="small"
            look="primary"
            onClick={() => {
              onClose();
              navigate(agentPath(arrived.id));
            }}
          >
            {text.agents.show}
          </Button>
        </>
      )}
    </div>
  );
}
