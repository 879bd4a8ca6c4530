import type { AnchorHTMLAttributes } from 'react';
import { navigate } from '../router';

/** A link within the page: followed without loading it again, unless somebody wants it in another tab. */
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
