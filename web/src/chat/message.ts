/**
 * A message of a room. Its state decides which fields it has:
 *
 *     message of the signed-in user:  sending ◄─► rejected     reply of an agent:  streaming ─► ended
 *                                        │                                             │          │
 *                                        ▼                                             ▼          ▼
 *                                     stored                                         stored     stored
 *
 * A message of another user is always stored. `role` separates messages from replies.
 */
import type { Attachment, Forwarded, Reaction, Relayed } from '../generated/api';
import type {
  AskUser,
  ChangeReport,
  ContentBlock,
  FinalizedTask,
  ModelFallback,
  Plan,
  SubagentTreeEntry,
  Usage,
} from './parts';

export type ChatMessage = UnsentMessage | LoggedMessage | StreamingReply | EndedReply;
/** A message that the hub has not acknowledged. */
export type UnsentMessage = SendingMessage | RejectedMessage;
/** A message in the log of the hub. */
export type LoggedMessage = StoredMessage | StoredReply;
export type Reply = StoredReply | StreamingReply | EndedReply;

interface MessageFields {
  id: string;
  roomId: string;
  /** Sender: id of a user or an agent. */
  from: string;
  senderName: string;
  text: string;
  timestamp: string;
  timestampMs: number;
}

interface UnsentFields extends MessageFields {
  role: 'user';
  senderType: 'user';
  clientMessageId: string;
  attachments: Attachment[];
  replyToId?: string;
}

export interface SendingMessage extends UnsentFields {
  state: 'sending';
}

/** A message that the hub has rejected. The user can send it again or discard it. */
export interface RejectedMessage extends UnsentFields {
  state: 'rejected';
  failure: string;
}

interface LoggedFields extends MessageFields {
  state: 'stored';
  /** Sequence number in the log. */
  seq: number;
  clientMessageId?: string;
  mentions: string[];
  attachments: Attachment[];
  reactions: Reaction[];
  replyToId?: string;
  threadId?: string;
  editedAt?: string;
  forwardedFrom?: Forwarded;
  /** Author and addressees, if an account relayed the message for an author outside the hub. */
  relayed?: Relayed;
}

export interface StoredMessage extends LoggedFields {
  role: 'user';
  senderType: 'user' | 'system';
}

/** Fields of a reply in every state. Cards arrive in any order, also after the reply is stored. */
interface ReplyFields extends MessageFields, ReplyCards {
  role: 'agent';
  senderType: 'agent';
  content: ContentBlock[];
}

/** Cards and other fields of a reply that come from events. The log has only its text and its content. */
export interface ReplyCards {
  plan?: Plan;
  askUser?: AskUser;
  changeReport?: ChangeReport;
  modelFallback?: ModelFallback;
  subagentTree?: SubagentTreeEntry[];
  /** Task that the agent completed or failed with this reply. */
  finalizedTask?: FinalizedTask;
  usage?: Usage;
  contextTokens?: number;
  messageCount?: number;
  durationMs?: number;
}

export interface StoredReply extends LoggedFields, ReplyFields {
  runId?: string;
  /** Outcome of the run: `complete`, `failed`, `cancelled` or `interrupted`. */
  outcome?: string;
}

export interface StreamingReply extends ReplyFields {
  state: 'streaming';
  isThinking: boolean;
  activitySummary?: string;
}

/** A reply whose run has ended before the stored reply arrived, or without one. */
export interface EndedReply extends ReplyFields {
  state: 'ended';
}

export function isReply(message: ChatMessage): message is Reply {
  return message.role === 'agent';
}

export function isStreaming(message: ChatMessage): message is StreamingReply {
  return message.state === 'streaming';
}

export function isStored(message: ChatMessage): message is LoggedMessage {
  return message.state === 'stored';
}

export function isStoredReply(message: ChatMessage): message is StoredReply {
  return isReply(message) && isStored(message);
}

export function isUnsent(message: ChatMessage): message is UnsentMessage {
  return message.state === 'sending' || message.state === 'rejected';
}

/** Id that the client gave to the message before it was sent. */
export function clientIdOf(message: ChatMessage): string | undefined {
  return 'clientMessageId' in message ? message.clientMessageId : undefined;
}

/** Id of the message that this one replies to. */
export function repliedToId(message: ChatMessage): string | undefined {
  return 'replyToId' in message ? message.replyToId : undefined;
}

/** Names of the tools that a reply has called, in order. */
export function toolNames({ content }: Reply): string[] {
  return content.flatMap((block) => (block.type === 'tool' ? [block.name] : []));
}
