import { ShieldQuestion } from 'lucide-react';
import { useEffect, useState } from 'react';
import { sessionOf } from '../chat/place';
import type { Permission } from '../chat/state';
import { escapeHidden } from '../markdown/hiddenCharacters';
import { useClient } from '../session/session';
import { text } from '../text';
import { Button } from '../ui/button';
import { classes } from '../ui/classes';
import { INPUT } from '../ui/field';

/** Time that a decided approval stays visible. */
const DECISION_SHOWN_MS = 6000;

export function PermissionList({ permissions }: { permissions: Permission[] }) {
  return permissions.map((permission) => <PermissionCard key={permission.requestId} permission={permission} />);
}

/**
 * Approval card with the complete tool input. Control characters and direction marks are escaped, so that the
 * user sees everything they allow.
 */
function PermissionCard({ permission }: { permission: Permission }) {
  const { agentName, toolName, toolInput, decision } = permission;
  const isHidden = useIsHidden(decision !== undefined);
  if (isHidden) return null;
  const title = text.permission.request(escapeHidden(agentName), escapeHidden(toolName));
  return (
    <section
      aria-label={title}
      className={classes(
        'mb-2 animate-appear overflow-hidden rounded-xl border bg-raised shadow-float',
        decision === undefined && 'border-accent/50',
      )}
    >
      <header className="flex items-center gap-2 px-3.5 pt-3 text-sm font-semibold">
        <ShieldQuestion size={17} className="shrink-0 text-accent" />
        <span className="min-w-0 flex-1 truncate">{title}</span>
        {decision === undefined && <Countdown expiresAt={permission.expiresAt} />}
      </header>
      <pre
        tabIndex={0}
        className="mx-3.5 my-2.5 max-h-56 overflow-auto rounded-lg bg-code px-3 py-2 font-mono text-xs whitespace-pre-wrap"
      >
        {formatInput(toolInput)}
      </pre>
      {decision === undefined ? <DecisionButtons permission={permission} /> : <Decision permission={permission} />}
    </section>
  );
}

function DecisionButtons({ permission }: { permission: Permission }) {
  const client = useClient();
  const [isDenying, setDenying] = useState(false);
  const [reason, setReason] = useState('');
  const [isUnsent, setUnsent] = useState(false);
  const decide = (decision: 'allow' | 'deny', allowAlways: boolean) => {
    const denyReason = decision === 'deny' && reason.trim() !== '' ? reason.trim() : undefined;
    const { requestId, inputDigest } = permission;
    const isSent = client.sendFrame({
      type: 'client:permission_response',
      requestId,
      decision,
      inputDigest,
      ...(allowAlways && { allowAlways }),
      ...(denyReason !== undefined && { denyReason }),
    });
    setUnsent(!isSent);
  };
  return (
    <footer className="space-y-2 border-t px-3.5 py-2.5">
      {isDenying ? (
        <form
          className="flex gap-2"
          onSubmit={(event) => {
            event.preventDefault();
            decide('deny', false);
          }}
        >
          <input
            autoFocus
            aria-label={text.permission.reason}
            placeholder={text.permission.reason}
            className={classes(INPUT, 'h-8 py-1 text-sm')}
            value={reason}
            onChange={(event) => setReason(event.target.value)}
          />
          <Button size="small" variant="danger" type="submit" className="h-8">
            {text.permission.deny}
          </Button>
          <Button size="small" variant="plain" className="h-8" onClick={() => setDenying(false)}>
            {text.cancel}
          </Button>
        </form>
      ) : (
        <div className="flex flex-wrap gap-2">
          <Button size="small" variant="primary" onClick={() => decide('allow', false)}>
            {text.permission.allow}
          </Button>
          {/* A rule belongs to a room, so the hub refuses one for a session without a room. */}
          {sessionOf(permission.roomId) === undefined && (
            <Button size="small" title={text.permission.alwaysHint} onClick={() => decide('allow', true)}>
              {text.permission.always}
            </Button>
          )}
          <Button size="small" variant="danger" className="ml-auto" onClick={() => setDenying(true)}>
            {text.permission.deny}
          </Button>
        </div>
      )}
      {isUnsent && (
        <p role="alert" className="text-sm text-danger">
          {text.permission.notSent}
        </p>
      )}
    </footer>
  );
}

function Decision({ permission }: { permission: Permission }) {
  const { decision, decidedByName = '', reason } = permission;
  const label =
    decision === 'timeout'
      ? text.permission.timeout
      : decision === 'allow'
        ? text.permission.allowed(decidedByName)
        : text.permission.denied(decidedByName);
  return (
    <p
      role="status"
      className={classes(
        'border-t px-3.5 py-2 text-sm font-medium',
        decision === 'allow' ? 'bg-accent-soft text-accent' : 'bg-danger-soft text-danger',
      )}
    >
      {label}
      {reason !== undefined && <span className="font-normal">: {reason}</span>}
    </p>
  );
}

function Countdown({ expiresAt }: { expiresAt: string }) {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.max(0, Math.ceil((Date.parse(expiresAt) - now) / 1000));
  return (
    <span
      role="timer"
      aria-label={text.permission.timeLeftLabel}
      className={classes('text-xs font-medium tabular-nums', seconds < 20 ? 'text-danger' : 'text-faint')}
    >
      {text.permission.timeLeft(seconds)}
    </span>
  );
}

function useIsHidden(isDecided: boolean): boolean {
  const [isHidden, setHidden] = useState(false);
  useEffect(() => {
    if (!isDecided) return;
    const timer = setTimeout(() => setHidden(true), DECISION_SHOWN_MS);
    return () => clearTimeout(timer);
  }, [isDecided]);
  return isHidden;
}

function formatInput(input: unknown): string {
  return escapeHidden(JSON.stringify(input, null, 2) ?? '');
}
