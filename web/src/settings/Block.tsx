import type { ReactNode } from 'react';

interface Props {
  title: string;
  lead?: string;
  children: ReactNode;
}

export function Block({ title, lead, children }: Props) {
  return (
    <section>
      <h2 className="font-semibold tracking-tight">{title}</h2>
      {lead !== undefined && <p className="mt-0.5 text-sm text-soft">{lead}</p>}
      <div className="mt-4 space-y-4">{children}</div>
    </section>
  );
}

export function Problem({ children }: { children: string | undefined }) {
  if (children === undefined) return null;
  return (
    <p role="alert" className="text-sm text-danger">
      {children}
    </p>
  );
}
