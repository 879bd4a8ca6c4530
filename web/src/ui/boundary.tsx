import { TriangleAlert } from 'lucide-react';
import { Component, type ReactNode } from 'react';
import { text } from '../text';
import { Button } from './button';
import { classes } from './classes';

interface Props {
  children: ReactNode;
  /** Classes of the error message, so that it takes the place and size of the failed part. */
  className?: string;
  /** Replaces the default error message. */
  fallback?: ReactNode;
}

/**
 * Error boundary: a part of the page that throws shows an error and a reload button, and the rest keeps
 * working.
 *
 * React writes the exception to the console. The button reloads the page instead of rendering the part again:
 * the state that caused the failure is still there, or a script was removed by an update of the hub. A
 * boundary whose `key` depends on the route or the open room recovers on navigation.
 */
export class Boundary extends Component<Props, { hasFailed: boolean }> {
  override state = { hasFailed: false };

  static getDerivedStateFromError(): { hasFailed: boolean } {
    return { hasFailed: true };
  }

  override render(): ReactNode {
    const { children, className, fallback = <Failure className={className} /> } = this.props;
    return this.state.hasFailed ? fallback : children;
  }
}

function Failure({ className }: { className?: string }) {
  return (
    <div role="alert" className={classes('flex flex-wrap content-center items-center justify-center gap-x-3 gap-y-2 p-4 text-sm text-soft', className)}>
      <span className="flex items-center gap-2">
        <TriangleAlert size={16} aria-hidden className="shrink-0 text-danger" />
        {text.partFailed}
      </span>
      <ReloadButton />
    </div>
  );
}

export function ReloadButton() {
  return (
    <Button size="small" onClick={() => location.reload()}>
      {text.reload}
    </Button>
  );
}
