/**
 * Sends the user's messages: shows each one at once, keeps it until the hub acknowledges it, and sends it again on the
 * next connection.
 *
 * Owns: a message keeps its `clientMessageId` whenever it is sent, and the hub stores a repeated one only once. A
 * message that the hub has rejected is sent again only when the user asks for it.
 */
import { dispatch, useChat } from '../chat/store';
import type { RejectedMessage, SendingMessage } from '../chat/message';
import type { Attachment, User } from '../generated/api';
import type { ClientFrame, ServerFrame } from './frames';
import { UnsentStore, type Unsent } from './unsent';

export interface Draft {
  content: string;
  replyToId?: string;
  attachments: Attachment[];
}

export class Outbox {
  readonly #me: User;
  readonly #unsent: UnsentStore;
  readonly #sendFrame: (frame: ClientFrame) => boolean;

  constructor(me: User, sendFrame: (frame: ClientFrame) => boolean) {
    this.#me = me;
    this.#unsent = new UnsentStore(me.id);
    this.#sendFrame = sendFrame;
  }

  /** Shows the messages that an earlier page left unsent. */
  restore(): void {
    this.#unsent.all().forEach((unsent) => this.#show(unsent));
  }

  send(roomId: string, draft: Draft): void {
    const unsent: Unsent = {
      clientMessageId: crypto.randomUUID?.() ?? randomId(),
      roomId,
      content: draft.content,
      replyToId: draft.replyToId,
      attachments: draft.attachments,
      writtenAt: new Date().toISOString(),
    };
    this.#unsent.add(unsent);
    this.#show(unsent);
    this.#transmit(unsent);
  }

  /** Sends all unsent messages on a new connection, except those that the hub has rejected. */
  resend(): void {
    for (const unsent of this.#unsent.all()) {
      if (!hasFailed(unsent)) this.#transmit(unsent);
    }
  }

  /** Sends a rejected message again. */
  retry({ roomId, clientMessageId }: RejectedMessage): void {
    const unsent = this.#unsent.find(clientMessageId);
    if (unsent === undefined) return;
    dispatch({ type: 'RETRY_SEND', roomId, clientMessageId });
    this.#transmit(unsent);
  }

  discard({ roomId, id, clientMessageId }: RejectedMessage): void {
    this.#unsent.remove(clientMessageId);
    dispatch({ type: 'REMOVE_MESSAGES', roomId, messageIds: [id] });
  }

  /** Removes the message that the frame acknowledges: an acknowledgement, or the stored message itself. */
  onFrame(frame: ServerFrame): void {
    if (frame.type === 'server:message_ack') this.#unsent.remove(frame.clientMessageId);
    else if (frame.type === 'server:new_message' || frame.type === 'server:message_complete') {
      const { clientMessageId } = frame.message;
      if (clientMessageId !== undefined) this.#unsent.remove(clientMessageId);
    }
  }

  #transmit({ clientMessageId, roomId, content, replyToId, attachments }: Unsent): void {
    const attachmentIds = attachments.map((file) => file.id);
    this.#sendFrame({ type: 'client:send_message', roomId, content, clientMessageId, replyToId, attachmentIds });
  }

  #show(unsent: Unsent): void {
    const { id, displayName } = this.#me;
    const message: SendingMessage = {
      state: 'sending',
      role: 'user',
      id: unsent.clientMessageId,
      clientMessageId: unsent.clientMessageId,
      roomId: unsent.roomId,
      from: id,
      senderName: displayName,
      senderType: 'user',
      text: unsent.content,
      timestamp: unsent.writtenAt,
      timestampMs: Date.parse(unsent.writtenAt),
      attachments: unsent.attachments,
      replyToId: unsent.replyToId,
    };
    dispatch({ type: 'SEND_STARTED', message });
  }
}

function hasFailed({ roomId, clientMessageId }: Unsent): boolean {
  const shown = useChat.getState().chats[roomId]?.messages ?? [];
  return shown.some((message) => message.state === 'rejected' && message.clientMessageId === clientMessageId);
}

/** Replacement for `crypto.randomUUID`, which does not exist without TLS. */
function randomId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
