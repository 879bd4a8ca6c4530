/**
 * Drop-down menu. Not modal, because a modal one inserts a style element, which the content security policy
 * forbids.
 */
import { Check } from 'lucide-react';
import { DropdownMenu as Radix } from 'radix-ui';
import type { ReactNode } from 'react';
import { classes } from './classes';

interface Props {
  trigger: ReactNode;
  children: ReactNode;
  align?: 'start' | 'end';
  onOpenChange?: (open: boolean) => void;
}

export function Menu({ trigger, children, align = 'end', onOpenChange }: Props) {
  return (
    <Radix.Root modal={false} onOpenChange={onOpenChange}>
      <Radix.Trigger asChild>{trigger}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content
          align={align}
          sideOffset={4}
          collisionPadding={8}
          className="z-50 min-w-48 animate-appear rounded-xl border bg-raised p-1 shadow-float"
        >
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

interface ItemProps {
  icon?: ReactNode;
  danger?: boolean;
  checked?: boolean;
  onSelect: () => void;
  children: ReactNode;
}

export function MenuItem({ icon, danger, checked, onSelect, children }: ItemProps) {
  return (
    <Radix.Item
      onSelect={onSelect}
      className={classes(
        'flex items-center gap-2.5 rounded-lg px-2.5 py-1.5 text-sm outline-none data-highlighted:bg-hover',
        danger === true && 'text-danger',
      )}
    >
      {icon !== undefined && <span className="text-faint">{icon}</span>}
      <span className="flex-1">{children}</span>
      {checked === true && <Check size={15} className="text-accent" />}
    </Radix.Item>
  );
}

export function MenuLine() {
  return <Radix.Separator className="my-1 h-px bg-line" />;
}

export function MenuLabel({ children }: { children: ReactNode }) {
  return <Radix.Label className="px-2.5 pt-1.5 pb-1 text-xs font-medium text-faint">{children}</Radix.Label>;
}
