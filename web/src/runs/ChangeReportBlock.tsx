import { ChevronRight, FileDiff } from 'lucide-react';
import type { ChangeReport } from '../chat/parts';
import { escapeHidden } from '../markdown/hiddenCharacters';
import { text } from '../text';
import { classes } from '../ui/classes';

/** Files that an agent changed, with their diffs. */
export function ChangeReportBlock({ report }: { report: ChangeReport }) {
  return (
    <section className="overflow-hidden rounded-xl border bg-raised text-sm">
      <header className="flex items-center gap-2 border-b px-3 py-2 font-semibold">
        <FileDiff size={16} className="text-accent" />
        {text.runs.changes(report.files.length + report.truncatedCount)}
      </header>
      {report.files.map((file) => (
        <details key={file.path} className="group/file border-b last:border-b-0">
          <summary className="flex items-center gap-2 px-3 py-1.5 hover:bg-hover">
            <ChevronRight size={14} className="text-faint transition-transform group-open/file:rotate-90" />
            <span className="truncate font-mono text-xs">{escapeHidden(file.path)}</span>
            <span className="ml-auto shrink-0 text-xs text-faint">{file.summary}</span>
          </summary>
          {file.diff !== undefined && <Diff diff={file.diff} />}
        </details>
      ))}
      {report.truncatedCount > 0 && (
        <p className="px-3 py-1.5 text-xs text-faint">{text.runs.moreFiles(report.truncatedCount)}</p>
      )}
    </section>
  );
}

function Diff({ diff }: { diff: string }) {
  return (
    <pre tabIndex={0} className="overflow-x-auto border-t bg-code py-1.5 font-mono text-xs leading-relaxed">
      {diff.split('\n').map((line, index) => (
        <div
          key={index}
          className={classes(
            'min-w-fit px-3',
            line.startsWith('+') && 'bg-added',
            line.startsWith('-') && 'bg-removed',
            line.startsWith('@@') && 'text-faint',
          )}
        >
          {line === '' ? ' ' : escapeHidden(line)}
        </div>
      ))}
    </pre>
  );
}
