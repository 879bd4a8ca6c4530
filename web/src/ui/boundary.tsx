import { TriangleAlert } from 'lucide-react';
import { Component, type ReactNode } from 'react';
import { text } from '../text';
import { Button } from './button';
import { classes } from './classes';

interface Props {
  children: ReactNode;
  /** Where the message stands: the place and the size of the part that failed. */
  className?: string;
  /** Shown instead of the usual message. */
  fallback?: ReactNode;
}

/**
 * Contains an exception to one part of the page: the part shows a message and a button, and the rest goes on.
 *
 * React itself writes the exception to the console. The button loads the page anew instead of drawing the part again:
 * the state that it failed on is still there, and a script that could not be fetched is gone since the hub was updated.
 * A boundary whose `key` follows the address or the open room recovers when somebody goes elsewhere.
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
