import type { AnchorHTMLAttributes } from 'react';
import { navigate } from '../router';

/** Link to a route of the app. Navigates without a page load, unless a modifier key asks for a new tab. */
export function Link({ href, ...rest }: AnchorHTMLAttributes<HTMLAnchorElement> & { href: string }) {
  return (
    <a
      href={href}
      onClick={(event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey) return;
        event.preventDefault();
        navigate(href);
      }}
      {...rest}
    />
  );
}
