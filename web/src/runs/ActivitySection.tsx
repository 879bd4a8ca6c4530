import { Brain, Check, ChevronRight, LoaderCircle, Wrench, X } from 'lucide-react';
import { memo, type ReactNode } from 'react';
import type { MessagePhase } from '../chat/phase';
import { isStreaming, toolNames, type Reply } from '../chat/message';
import type { ThinkingBlock, ToolBlock } from '../chat/parts';
import { escapeHidden } from '../markdown/hiddenCharacters';
import { text } from '../text';
import { classes } from '../ui/classes';

/** Thinking and tool calls of a reply: expanded while the agent works, collapsed to one line afterwards. */
export function ActivitySection({ message, phase }: { message: Reply; phase: MessagePhase }) {
  const steps = message.content.filter((block) => block.type !== 'error');
  if (phase === 'done' || phase === 'streaming') {
    if (steps.length === 0) return null;
    return (
      <details className="group/activity">
        <summary className="inline-flex items-center gap-1.5 rounded-md py-0.5 pr-2 text-sm text-faint hover:text-soft">
          <ChevronRight size={14} className="transition-transform group-open/activity:rotate-90" />
          {summary(message)}
        </summary>
        <Steps steps={steps} />
      </details>
    );
  }
  // A running tool that is the last step is already visible: its status line is for screen readers only.
  const last = steps.at(-1);
  const activity = isStreaming(message) ? message.activitySummary : undefined;
  const isAlreadyShown = last?.type === 'tool' && last.isRunning && last.name === activity;
  return (
    <div className="space-y-1">
      {steps.length > 0 && <Steps steps={steps} />}
      <p role="status" className={classes('flex items-center gap-2 text-sm text-soft', isAlreadyShown && 'sr-only')}>
        {phase === 'thinking' ? (
          <Brain size={15} className="animate-pulse-soft text-accent" />
        ) : (
          <LoaderCircle size={15} className="animate-spin text-accent" />
        )}
        {phase === 'thinking' ? text.runs.thinking : (activity ?? text.runs.working)}
      </p>
    </div>
  );
}

function Steps({ steps }: { steps: (ThinkingBlock | ToolBlock)[] }) {
  return (
    <ol className="mt-1 space-y-1 border-l-2 pl-3">
      {steps.map((step, index) => (
        <li key={index}>{step.type === 'tool' ? <ToolCall tool={step} /> : <Thought thought={step} />}</li>
      ))}
    </ol>
  );
}

const Thought = memo(function Thought({ thought }: { thought: ThinkingBlock }) {
  return (
    <Fold icon={<Brain size={14} className="text-faint" />} label={text.runs.thoughts} hint={thought.text}>
      <p className="text-sm whitespace-pre-wrap text-soft">{escapeHidden(thought.text)}</p>
    </Fold>
  );
});

const ToolCall = memo(function ToolCall({ tool }: { tool: ToolBlock }) {
  return (
    <Fold icon={<ToolState tool={tool} />} label={escapeHidden(tool.name)} hint={tool.output ?? tool.input} mono>
      <div className="space-y-2 text-sm">
        <Output label={text.runs.input} content={pretty(tool.input)} />
        {tool.progress.length > 0 && (
          <pre className="max-h-48 overflow-auto rounded-lg bg-code px-3 py-2 font-mono text-xs">
            {tool.progress.map(({ line, stream }, index) => (
              <div key={index} className={stream === 'stderr' ? 'text-danger' : 'text-soft'}>
                {escapeHidden(line)}
              </div>
            ))}
          </pre>
        )}
        {!tool.isRunning && <Output label={text.runs.output} content={tool.output ?? ''} isError={tool.isError} />}
      </div>
    </Fold>
  );
});

function ToolState({ tool }: { tool: ToolBlock }) {
  if (tool.isRunning) return <LoaderCircle size={14} className="animate-spin text-accent" aria-label={text.runs.running} />;
  if (tool.isError === true) return <X size={14} className="text-danger" aria-label={text.runs.error} />;
  return tool.output === undefined ? <Wrench size={14} className="text-faint" /> : <Check size={14} className="text-accent" />;
}

interface FoldProps {
  icon: ReactNode;
  label: string;
  hint: string;
  mono?: boolean;
  children: ReactNode;
}

function Fold({ icon, label, hint, mono, children }: FoldProps) {
  return (
    <details className="group/fold">
      <summary className="flex items-center gap-2 rounded-md py-0.5 text-sm text-soft hover:text-ink">
        {icon}
        <span className="shrink-0 font-medium">{label}</span>
        <span className={classes('truncate text-faint', mono === true && 'font-mono text-xs')}>
          {escapeHidden(hint.slice(0, 200).replace(/\s+/g, ' '))}
        </span>
        <ChevronRight size={13} className="ml-auto shrink-0 text-faint transition-transform group-open/fold:rotate-90" />
      </summary>
      <div className="py-1.5">{children}</div>
    </details>
  );
}

function Output({ label, content, isError }: { label: string; content: string; isError?: boolean }) {
  return (
    <div>
      <p className="mb-0.5 text-xs font-medium text-faint">{label}</p>
      <pre
        tabIndex={0}
        className={classes(
          'max-h-72 overflow-auto rounded-lg px-3 py-2 font-mono text-xs whitespace-pre-wrap',
          isError === true ? 'bg-danger-soft text-danger' : 'bg-code',
        )}
      >
        {content === '' ? text.runs.noOutput : escapeHidden(content)}
      </pre>
    </div>
  );
}

/** One-line summary, such as “7 tools · 12k tokens · 48 s”. */
function summary(message: Reply): string {
  const { usage, contextTokens, durationMs } = message;
  const toolCount = toolNames(message).length;
  const spent = (usage?.inputTokens ?? 0) + (usage?.outputTokens ?? 0);
  const tokens = spent > 0 ? spent : (contextTokens ?? 0);
  const parts = [
    toolCount > 0 && text.runs.tools(toolCount),
    toolCount === 0 && text.runs.thoughts,
    tokens > 0 && text.runs.tokens(tokens),
    durationMs !== undefined && durationMs >= 1000 && text.runs.seconds(Math.round(durationMs / 1000)),
  ];
  return parts.filter((part) => part !== false).join(' · ');
}

/** Indents JSON input of a tool. Other input stays unchanged. */
function pretty(input: string): string {
  try {
    return JSON.stringify(JSON.parse(input), null, 2);
  } catch {
    return input;
  }
}

