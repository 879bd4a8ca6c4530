/** Open panels and dialogs. */
import { create } from 'zustand';

/** Side panel of one room. It is not shown in other rooms. */
export type Panel = { roomId: string } & ({ kind: 'details' } | { kind: 'thread'; messageId: string });

interface View {
  panel?: Panel;
  palette: boolean;
  newRoom: boolean;
}

export const useView = create<View>(() => ({ palette: false, newRoom: false }));

export function showPanel(panel: Panel | undefined): void {
  useView.setState({ panel });
}

export function toggleDetails(roomId: string): void {
  const isOpen = ({ panel }: View) => panel?.kind === 'details' && panel.roomId === roomId;
  useView.setState((view) => ({ panel: isOpen(view) ? undefined : { kind: 'details', roomId } }));
}

export function usePanel(roomId: string): Panel | undefined {
  return useView(({ panel }) => (panel?.roomId === roomId ? panel : undefined));
}

export function showPalette(palette: boolean): void {
  useView.setState({ palette });
}

export function showNewRoom(newRoom: boolean): void {
  useView.setState({ newRoom });
}
