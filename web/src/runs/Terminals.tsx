import { ChevronRight, SquareTerminal } from 'lucide-react';
import { useMemo } from 'react';
import type { RoomChat } from '../chat/state';
import { escapeHidden } from '../markdown/hiddenCharacters';
import { text } from '../text';
import { classes } from '../ui/classes';
import { terminalLines } from './ansi';

const COLOURS = ['', 'text-danger', 'text-accent', 'text-warn', 'text-accent', 'text-warn', 'text-accent', 'text-soft'];

/** Terminal output of agents, collapsed by default. */
export function Terminals({ terminals }: { terminals: RoomChat['terminals'] }) {
  return Object.entries(terminals).map(([agentId, { agentName, output }]) => (
    <details key={agentId} className="group/terminal mb-2 overflow-hidden rounded-xl border bg-raised text-sm">
      <summary className="flex items-center gap-2 px-3 py-2 text-soft">
        <SquareTerminal size={15} className="text-accent" />
        {text.runs.terminal(agentName)}
        <ChevronRight size={14} className="ml-auto text-faint transition-transform group-open/terminal:rotate-90" />
      </summary>
      <Screen output={output} />
    </details>
  ));
}

function Screen({ output }: { output: string }) {
  const lines = useMemo(() => terminalLines(output), [output]);
  return (
    <pre
      tabIndex={0}
      className="flex max-h-64 flex-col-reverse overflow-auto border-t bg-code px-3 py-2 font-mono text-xs leading-relaxed"
    >
      <code className="block">
        {lines.map((line, index) => (
          <div key={index}>
            {line.length === 0
              ? ' '
              : line.map((span, at) => (
                  <span key={at} className={classes(COLOURS[span.colour ?? 0], span.isBold === true && 'font-bold')}>
                    {escapeHidden(span.text)}
                  </span>
                ))}
          </div>
        ))}
      </code>
    </pre>
  );
}
