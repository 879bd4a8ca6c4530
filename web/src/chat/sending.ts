/** The part of the reducer for messages that the user sends. */
import type { ChatAction } from './actions';
import { isUnsent, type SendingMessage, type StoredMessage, type UnsentMessage } from './message';
import { put, replace } from './messages';
import type { RoomChat } from './state';

type Sent = Extract<ChatAction, { type: 'SEND_ACKNOWLEDGED' | 'SEND_FAILED' | 'RETRY_SEND' }>;

export function applySendResult(chat: RoomChat, action: Sent): RoomChat {
  const unsent = chat.messages.filter(isUnsent).find((message) => message.clientMessageId === action.clientMessageId);
  if (unsent === undefined) return chat;
  const sending = asSending(unsent);
  switch (action.type) {
    case 'SEND_ACKNOWLEDGED': {
      const { messageId: id, seq } = action;
      const messages = chat.messages.filter((message) => message !== unsent);
      const stored: StoredMessage = { ...sending, state: 'stored', id, seq, mentions: [], reactions: [] };
      return { ...chat, messages: put(messages, stored) };
    }
    case 'SEND_FAILED':
      return replace(chat, unsent, { ...sending, state: 'rejected', failure: action.failure });
    case 'RETRY_SEND':
      return replace(chat, unsent, sending);
  }
}

function asSending(unsent: UnsentMessage): SendingMessage {
  if (unsent.state === 'sending') return unsent;
  const { failure: _, ...message } = unsent;
  return { ...message, state: 'sending' };
}
