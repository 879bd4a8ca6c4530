import { ArrowUp, LoaderCircle, Paperclip, X } from 'lucide-react';
import { useEffect, useEffectEvent, useLayoutEffect, useRef, useState, type ClipboardEvent, type KeyboardEvent, type ReactNode } from 'react';
import { apiRequest } from '../api/http';
import type { RoomChat, RoomEntry } from '../chat/state';
import { escapeHidden } from '../markdown/hiddenCharacters';
import type { Writing } from '../rooms/RoomPage';
import { useClient } from '../session/session';
import { text } from '../text';
import { focusNewest } from '../timeline/keys';
import { IconButton } from '../ui/button';
import { classes } from '../ui/classes';
import { commandIn } from './commands';
import { choicesFor, complete, triggerAt, type Choice } from './completion';
import { CompletionList, OPTION_ID } from './CompletionList';
import { loadDraft, saveDraft } from './drafts';
import { TypingLine } from './TypingLine';
import { useUploads, type Upload } from './uploads';

interface Props {
  room: RoomEntry;
  chat: RoomChat;
  writing: Writing;
  onWritten: () => void;
  dropped: File[];
  onTaken: () => void;
}

const MAX_FIELD_HEIGHT_PX = 240;

export function Composer({ room, chat, writing, onWritten, dropped, onTaken }: Props) {
  const client = useClient();
  const field = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const [content, setContent] = useState(() => loadDraft(client.me.id, room.id));
  const [caret, setCaret] = useState(0);
  const [chosen, setChosen] = useState(0);
  const [isDismissed, setDismissed] = useState(false);
  const { uploads, add, remove, clear, attachments, isUploading } = useUploads();
  const editing = chat.messages.find((message) => message.id === writing.editing);
  const repliedTo = chat.messages.find((message) => message.id === writing.replyTo);
  const trigger = isDismissed ? undefined : triggerAt(content, caret);
  const choices = trigger === undefined ? [] : choicesFor(trigger, room.members, client.me.id);

  useLayoutEffect(() => {
    grow(field.current);
  }, [content]);
  // Focuses the field when a room opens. Not on touch screens, where the keyboard would cover the messages.
  useEffect(() => {
    const isElsewhere = document.querySelector('[role=dialog]') !== null;
    if (matchMedia('(pointer: fine)').matches && !isElsewhere) field.current?.focus({ preventScroll: true });
  }, []);
  // An effect event, so that only the start of an edit fills the field and later renders keep the typed text.
  const beginEditing = useEffectEvent(() => {
    setContent(editing?.text ?? '');
    field.current?.focus();
  });
  useEffect(() => {
    if (writing.editing !== undefined) beginEditing();
  }, [writing.editing]);
  useEffect(() => {
    if (writing.replyTo !== undefined) field.current?.focus();
  }, [writing.replyTo]);
  const upload = useEffectEvent((files: File[]) => {
    add(files);
    onTaken();
  });
  useEffect(() => {
    if (dropped.length > 0) upload(dropped);
  }, [dropped]);

  const write = (next: string, at: number) => {
    setContent(next);
    setCaret(at);
    setChosen(0);
    setDismissed(false);
    if (writing.editing === undefined) saveDraft(client.me.id, room.id, next);
    if (next !== '') client.typing(room.id);
  };
  const done = () => {
    // After an edit the draft from before the edit is restored.
    write(writing.editing === undefined ? '' : loadDraft(client.me.id, room.id), 0);
    clear();
    onWritten();
  };
  const send = () => {
    const trimmed = content.trim();
    const command = commandIn(trimmed);
    if (editing !== undefined) {
      if (trimmed !== '' && trimmed !== editing.text) void apiRequest('PUT', `/api/messages/${editing.id}`, { content: trimmed });
    } else if (command !== undefined) command.run(client, room.id);
    else if (isUploading || (trimmed === '' && attachments.length === 0)) return;
    else client.outbox.send(room.id, { content: trimmed, replyToId: writing.replyTo, attachments });
    done();
  };
  const take = (choice: Choice) => {
    if (trigger === undefined) return;
    const completed = complete(content, caret, trigger, choice);
    write(completed.text, completed.caret);
    requestAnimationFrame(() => field.current?.setSelectionRange(completed.caret, completed.caret));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const isComposing = event.nativeEvent.isComposing;
    const choice = choices[chosen];
    if (choice !== undefined && trigger !== undefined) {
      const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
      if (step !== 0) {
        event.preventDefault();
        return setChosen((chosen + step + choices.length) % choices.length);
      }
      const isWritten = trigger.kind === 'command' && choice.insert === content.trim();
      if (event.key === 'Tab' || (event.key === 'Enter' && !event.shiftKey && !isComposing && !isWritten)) {
        event.preventDefault();
        return take(choice);
      }
    }
    if (event.key === 'Escape') {
      if (choices.length > 0) setDismissed(true);
      else if (writing.editing !== undefined) done();
      else onWritten();
    } else if (event.key === 'ArrowUp' && content === '') {
      event.preventDefault();
      focusNewest();
    } else if (event.key === 'Enter' && !event.shiftKey && !isComposing) {
      event.preventDefault();
      send();
    }
  };
  const onPaste = (event: ClipboardEvent) => {
    if (event.clipboardData.files.length === 0) return;
    event.preventDefault();
    add(event.clipboardData.files);
  };

  const isEmpty = content.trim() === '' && attachments.length === 0;
  return (
    <div className="relative">
      {choices.length > 0 && <CompletionList choices={choices} chosen={chosen} onSelect={take} />}
      <div className="rounded-2xl border border-line-strong bg-raised shadow-xs focus-within:border-accent focus-within:ring-3 focus-within:ring-accent/15">
        {(editing !== undefined || repliedTo !== undefined) && (
          <Chip onClose={editing === undefined ? onWritten : done}>
            {editing === undefined ? text.composer.replying(repliedTo?.senderName ?? '') : text.composer.editing}
          </Chip>
        )}
        {uploads.length > 0 && <UploadList uploads={uploads} onRemove={remove} />}
        <div className="flex items-end gap-1 p-1.5">
          <IconButton label={text.composer.attach} onClick={() => picker.current?.click()}>
            <Paperclip size={18} />
          </IconButton>
          <input
            ref={picker}
            type="file"
            multiple
            hidden
            onChange={({ target }) => {
              add(target.files ?? []);
              target.value = '';
            }}
          />
          <textarea
            ref={field}
            rows={1}
            value={content}
            maxLength={100_000}
            aria-label={text.composer.label(room.name)}
            placeholder={text.composer.placeholder(room.name)}
            aria-expanded={choices.length > 0}
            aria-activedescendant={choices.length > 0 ? `${OPTION_ID}${chosen}` : undefined}
            role="combobox"
            aria-controls="completion"
            aria-autocomplete="list"
            dir="auto"
            className="max-h-60 min-h-8 flex-1 resize-none self-center bg-transparent px-1 py-1 leading-6 outline-none placeholder:text-faint"
            onChange={({ target }) => write(target.value, target.selectionStart)}
            onSelect={({ currentTarget }) => setCaret(currentTarget.selectionStart)}
            onKeyDown={onKeyDown}
            onPaste={onPaste}
          />
          <button
            type="button"
            aria-label={text.composer.send}
            title={text.composer.hint}
            disabled={isEmpty || isUploading}
            onClick={send}
            className="flex size-8 shrink-0 items-center justify-center rounded-xl bg-accent text-on-accent transition-opacity hover:bg-accent-strong disabled:opacity-30"
          >
            {isUploading ? <LoaderCircle size={17} className="animate-spin" /> : <ArrowUp size={18} strokeWidth={2.2} />}
          </button>
        </div>
      </div>
      <TypingLine chat={chat} room={room} />
    </div>
  );
}

function Chip({ onClose, children }: { onClose: () => void; children: ReactNode }) {
  return (
    <div className="flex items-center gap-2 border-b px-3.5 py-1.5 text-sm text-soft">
      <span className="flex-1 truncate">{children}</span>
      <IconButton label={text.cancel} className="size-6" onClick={onClose}>
        <X size={14} />
      </IconButton>
    </div>
  );
}

function UploadList({ uploads, onRemove }: { uploads: Upload[]; onRemove: (key: string) => void }) {
  return (
    <ul className="flex flex-wrap gap-2 px-3 pt-2.5">
      {uploads.map(({ key, name, attachment, problem }) => (
        <li
          key={key}
          className={classes(
            'flex items-center gap-1.5 rounded-lg border py-1 pr-1 pl-2.5 text-sm',
            problem !== undefined && 'border-danger bg-danger-soft text-danger',
          )}
        >
          {attachment === undefined && problem === undefined && (
            <LoaderCircle size={13} className="animate-spin text-accent" aria-label={text.composer.uploading} />
          )}
          <span className={problem === undefined ? 'max-w-64 truncate' : 'min-w-0 [overflow-wrap:anywhere]'}>
            {problem === undefined ? escapeHidden(name) : text.composer.uploadFailed(escapeHidden(name), problem)}
          </span>
          <IconButton label={text.composer.removeFile(escapeHidden(name))} className="size-5" onClick={() => onRemove(key)}>
            <X size={12} />
          </IconButton>
        </li>
      ))}
    </ul>
  );
}

function grow(field: HTMLTextAreaElement | null): void {
  if (field === null) return;
  field.style.height = 'auto';
  field.style.height = `${Math.min(MAX_FIELD_HEIGHT_PX, field.scrollHeight)}px`;
}
