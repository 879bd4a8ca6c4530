import type { Reply } from '../chat/message';
import { compact, text } from '../text';

/** Context usage, tokens and cost of a reply. */
export function UsageLine({ message }: { message: Reply }) {
  const { usage, contextTokens } = message;
  const spent = (usage?.inputTokens ?? 0) + (usage?.outputTokens ?? 0);
  const used = contextTokens ?? spent;
  if (used === 0) return null;
  const limit = usage?.tokenLimit;
  const share = limit === undefined ? undefined : Math.min(1, used / limit);
  return (
    <p className="flex items-center gap-2 text-xs text-faint tabular-nums">
      {share !== undefined && (
        <span
          role="meter"
          aria-label={text.runs.usage}
          aria-valuenow={Math.round(share * 100)}
          aria-valuemin={0}
          aria-valuemax={100}
          className="h-1.5 w-16 overflow-hidden rounded-full bg-line"
        >
          <span className="block h-full rounded-full bg-accent" style={{ width: `${Math.max(2, share * 100)}%` }} />
        </span>
      )}
      {limit === undefined ? text.runs.tokens(used) : text.runs.context(compact(used), compact(limit))}
      {usage?.costMicros !== undefined && <span>{text.runs.cost((usage.costMicros / 1e6).toFixed(4))}</span>}
    </p>
  );
}
