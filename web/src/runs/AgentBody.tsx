/**
 * Body of an agent's message: text, activity and cards. Cards come from typed events, never from the text.
 */
import { Ban, Cpu, TriangleAlert } from 'lucide-react';
import { getMessagePhase } from '../chat/phase';
import { isStored, type Reply } from '../chat/message';
import type { ModelFallback } from '../chat/parts';
import { MessageText } from '../markdown/MessageText';
import { escapeHidden } from '../markdown/hiddenCharacters';
import { text } from '../text';
import { ActivitySection } from './ActivitySection';
import { ChangeReportBlock } from './ChangeReportBlock';
import { AskUserCard } from './AskUserCard';
import { FinalizeTaskBlock } from './FinalizeTaskBlock';
import { PlanBlock } from './PlanBlock';
import { SubagentTreeView } from './SubagentTreeView';
import { UsageLine } from './UsageLine';

interface Props {
  message: Reply;
  /** Names that the text mentions. */
  names: readonly string[];
  mine: readonly string[];
}

export function AgentBody({ message, names, mine }: Props) {
  const phase = getMessagePhase(message);
  const errors = message.content.filter((block) => block.type === 'error');
  return (
    <div className="space-y-2">
      {message.modelFallback !== undefined && <Fallback {...message.modelFallback} />}
      {message.subagentTree !== undefined && <SubagentTreeView entries={message.subagentTree} />}
      <ActivitySection message={message} phase={phase} />
      {message.plan !== undefined && <PlanBlock message={message} plan={message.plan} />}
      {errors.map((error, index) => (
        <p key={index} className="flex gap-2 rounded-lg bg-danger-soft px-3 py-2 text-sm text-danger">
          <TriangleAlert size={15} className="mt-0.5 shrink-0" />
          <span className="whitespace-pre-wrap">{escapeHidden(error.text)}</span>
        </p>
      ))}
      {(message.text !== '' || phase === 'streaming') && (
        <MessageText
          text={message.text}
          isStreaming={phase !== 'done'}
          hasCursor={phase === 'streaming'}
          names={names}
          mine={mine}
        />
      )}
      {message.askUser !== undefined && <AskUserCard key={message.askUser.questionId} askUser={message.askUser} />}
      {message.changeReport !== undefined && <ChangeReportBlock report={message.changeReport} />}
      {message.finalizedTask !== undefined && <FinalizeTaskBlock task={message.finalizedTask} />}
      {message.usage !== undefined && <UsageLine message={message} />}
      {isStored(message) && <Outcome outcome={message.outcome} />}
    </div>
  );
}

function Fallback({ preferredModel, actualModel, reason }: ModelFallback) {
  return (
    <p className="inline-flex items-center gap-2 rounded-lg bg-warn-soft px-2.5 py-1 text-sm text-warn">
      <Cpu size={14} className="shrink-0" />
      {text.runs.fallback(preferredModel, actualModel)}
      <span className="font-normal italic">{reason.replaceAll('_', ' ')}</span>
    </p>
  );
}

const OUTCOMES: Record<string, string> = {
  cancelled: text.timeline.cancelled,
  interrupted: text.timeline.interrupted,
  failed: text.timeline.failed,
};

function Outcome({ outcome }: { outcome: string | undefined }) {
  const label = outcome === undefined ? undefined : OUTCOMES[outcome];
  if (label === undefined) return null;
  return (
    <p className="flex items-center gap-1.5 text-xs font-medium text-faint">
      <Ban size={12} />
      {label}
    </p>
  );
}
