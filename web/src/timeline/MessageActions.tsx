import { Copy, CornerUpLeft, Forward, HelpCircle, Link, MessagesSquare, MoreHorizontal, Pencil, Pin, SmilePlus, Trash2 } from 'lucide-react';
import { useEffect, useState } from 'react';
import { apiRequest } from '../api/http';
import { useChat } from '../chat/store';
import type { LoggedMessage } from '../chat/message';
import type { RoomRole } from '../generated/api';
import { stripDirectionMarks } from '../markdown/hiddenCharacters';
import type { Writing } from '../rooms/RoomPage';
import { roomPath } from '../router';
import { WhyDialog } from '../runs/WhyDialog';
import { text } from '../text';
import { Button, IconButton } from '../ui/button';
import { copyText } from '../ui/copy';
import { Dialog, DialogBoundary } from '../ui/dialog';
import { Menu, MenuItem, MenuLine } from '../ui/menu';
import { showPanel } from '../view';
import { ForwardDialog } from './ForwardDialog';

interface Props {
  message: LoggedMessage;
  isPinned: boolean;
  roomRole: RoomRole;
  onWrite: (writing: Writing) => void;
  /** Reports whether a menu or dialog is open, so that the row keeps the toolbar. */
  onBusy: (isBusy: boolean) => void;
}

type OpenDialog = 'why' | 'delete' | 'forward';

const QUICK = ['👍', '❤️', '😄', '🎉', '👀', '✅', '🙏', '🤔'];

export function MessageActions({ message, isPinned, roomRole, onWrite, onBusy }: Props) {
  const me = useChat((state) => state.me?.id);
  const [dialog, setDialog] = useState<OpenDialog>();
  const [isMenuOpen, setMenuOpen] = useState(false);
  const isMine = message.from === me;
  const mayDelete = isMine || roomRole !== 'member';
  const open = (isOpen: boolean) => {
    setMenuOpen(isOpen);
    if (isOpen) onBusy(true);
  };
  const close = () => setDialog(undefined);
  // A menu item may open a dialog: the toolbar stays until both are closed.
  const isBusy = isMenuOpen || dialog !== undefined;
  useEffect(() => {
    if (!isBusy) onBusy(false);
  }, [isBusy, onBusy]);
  const showThread = () =>
    showPanel({ kind: 'thread', roomId: message.roomId, messageId: message.threadId ?? message.id });
  const copy = (content: string) => void copyText(content);
  const link = () => location.origin + roomPath(message.roomId, message.id);
  return (
    <div
      role="toolbar"
      aria-label={text.timeline.actions}
      className="absolute -top-3 right-4 z-10 flex rounded-lg border bg-raised p-0.5 shadow-float"
    >
      <ReactionMenu message={message} onOpenChange={open} />
      <IconButton label={text.timeline.reply} className="size-7" onClick={() => onWrite({ replyTo: message.id })}>
        <CornerUpLeft size={15} />
      </IconButton>
      <IconButton
        label={text.timeline.thread}
        className="size-7"
        onClick={showThread}
      >
        <MessagesSquare size={15} />
      </IconButton>
      <Menu
        onOpenChange={open}
        trigger={
          <IconButton label={text.more} className="size-7">
            <MoreHorizontal size={15} />
          </IconButton>
        }
      >
        {isMine && message.forwardedFrom === undefined && message.relayed === undefined && (
          <MenuItem icon={<Pencil size={15} />} onSelect={() => onWrite({ editing: message.id })}>
            {text.timeline.edit}
          </MenuItem>
        )}
        <MenuItem icon={<Copy size={15} />} onSelect={() => copy(message.text)}>
          {text.timeline.copyText}
        </MenuItem>
        <MenuItem icon={<Link size={15} />} onSelect={() => copy(link())}>
          {text.timeline.copyLink}
        </MenuItem>
        <MenuItem icon={<Forward size={15} />} onSelect={() => setDialog('forward')}>
          {text.timeline.forward}
        </MenuItem>
        <MenuItem
          icon={<Pin size={15} />}
          onSelect={() => void apiRequest(isPinned ? 'DELETE' : 'POST', `/api/messages/${message.id}/pin`)}
        >
          {isPinned ? text.timeline.unpin : text.timeline.pin}
        </MenuItem>
        <MenuItem icon={<HelpCircle size={15} />} onSelect={() => setDialog('why')}>
          {text.timeline.why}
        </MenuItem>
        {mayDelete && (
          <>
            <MenuLine />
            <MenuItem danger icon={<Trash2 size={15} />} onSelect={() => setDialog('delete')}>
              {text.timeline.delete}
            </MenuItem>
          </>
        )}
      </Menu>
      <DialogBoundary key={dialog} onClose={close}>
        {dialog === 'why' && <WhyDialog messageId={message.id} onClose={close} />}
        {dialog === 'forward' && <ForwardDialog message={message} onClose={close} />}
        {dialog === 'delete' && <DeleteDialog message={message} onClose={close} />}
      </DialogBoundary>
    </div>
  );
}

function ReactionMenu({ message, onOpenChange }: { message: LoggedMessage; onOpenChange: (isOpen: boolean) => void }) {
  return (
    <Menu
      onOpenChange={onOpenChange}
      trigger={
        <IconButton label={text.timeline.react} className="size-7">
          <SmilePlus size={15} />
        </IconButton>
      }
    >
      <div className="grid grid-cols-4">
        {QUICK.map((emoji) => (
          <MenuItem key={emoji} onSelect={() => react(message.id, emoji)}>
            <span className="text-lg">{emoji}</span>
          </MenuItem>
        ))}
      </div>
    </Menu>
  );
}

export function react(messageId: string, emoji: string): void {
  void apiRequest('POST', `/api/messages/${messageId}/reactions`, { emoji });
}

function DeleteDialog({ message, onClose }: { message: LoggedMessage; onClose: () => void }) {
  const remove = () => void apiRequest('DELETE', `/api/messages/${message.id}`).finally(onClose);
  return (
    <Dialog open onClose={onClose} title={text.timeline.delete} lead={text.timeline.deleteConfirm}>
      <p className="mb-4 line-clamp-4 rounded-lg bg-code px-3 py-2 text-sm whitespace-pre-wrap">{stripDirectionMarks(message.text)}</p>
      <div className="flex justify-end gap-2">
        <Button variant="plain" onClick={onClose}>
          {text.cancel}
        </Button>
        <Button variant="danger" onClick={remove} autoFocus>
          {text.timeline.delete}
        </Button>
      </div>
    </Dialog>
  );
}
