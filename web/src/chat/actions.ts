/**
 * Actions of the chat reducer. The first ones in `ChatAction`, up to `PUSH_TEXT_SEGMENT`, keep the action names of the
 * original chat-events specification; the others were added by Parlor.
 */
import type { NotificationPref, Reaction, RoomFrame, MemberFrame, Task } from '../generated/api';
import type { LoggedMessage, SendingMessage } from './message';
import type { AskUser, ChangeReport, ModelFallback, Plan, ProgressLine, SubagentTreeEntry, Usage } from './parts';
import type { AgentState, Connection, Permission, RunUsage, QueuedItem, RoomEntry } from './state';

/** Refers to a reply: by its message id if known, otherwise the current reply of the agent in the room. */
export interface ReplyRef {
  /** Room, or for a run without a room the key of its session (`chat/place`). */
  roomId: string;
  agentId: string;
  agentName?: string;
  messageId?: string;
}

export type ChatAction =
  | ({ type: 'APPEND_TOKEN'; token: string; thinking: boolean } & ReplyRef)
  | ({ type: 'SET_THINKING'; isThinking: boolean } & ReplyRef)
  | { type: 'PUSH_MESSAGE'; message: LoggedMessage; isNew: boolean }
  | ({ type: 'FINALIZE_MESSAGE'; durationMs?: number } & ReplyRef)
  | { type: 'CLEAR_MESSAGES'; roomId: string }
  | ({ type: 'SET_ACTIVITY'; summary?: string; tool?: { id: string; name: string; input: string } } & ReplyRef)
  | ({ type: 'ACTIVITY_DONE'; toolId?: string; output?: string; isError?: boolean } & ReplyRef)
  | ({ type: 'SET_CONTEXT_USAGE'; contextTokens?: number; messageCount?: number; usage?: Usage } & ReplyRef)
  | ({ type: 'ADD_SUBAGENT'; entry: SubagentTreeEntry } & ReplyRef)
  | ({
      type: 'MARK_SUBAGENT_DONE';
      subagentId: string;
      status: SubagentTreeEntry['status'];
      result?: string;
    } & ReplyRef)
  | ({ type: 'SET_PLAN'; plan: Plan; runId?: string } & ReplyRef)
  | ({ type: 'SET_ASK_USER'; askUser: AskUser } & ReplyRef)
  | ({ type: 'SET_MODEL_FALLBACK'; modelFallback: ModelFallback } & ReplyRef)
  | ({ type: 'PUSH_TEXT_SEGMENT'; text: string } & ReplyRef)
  // Actions that the original chat-events specification does not have.
  | ({ type: 'BEGIN_REPLY' } & ReplyRef)
  | ({ type: 'APPEND_ERROR'; text: string } & ReplyRef)
  | ({ type: 'TOOL_PROGRESS'; tool: string; line: ProgressLine } & ReplyRef)
  | ({ type: 'SET_SUBAGENT_ACTIVITY'; subagentId: string; activity?: string } & ReplyRef)
  | ({ type: 'SET_CHANGE_REPORT'; changeReport: ChangeReport } & ReplyRef)
  | { type: 'QUESTION_ENDED'; roomId: string; questionId: string; end: NonNullable<AskUser['end']> }
  | { type: 'SET_QUEUE'; roomId: string; agentId: string; items: QueuedItem[] }
  | { type: 'REMOVE_MESSAGES'; roomId: string; messageIds: string[] }
  | { type: 'SET_REACTIONS'; roomId: string; messageId: string; reactions: Reaction[] }
  | { type: 'SET_PINNED'; roomId: string; messageId: string; pinned: boolean }
  | { type: 'SEND_STARTED'; message: SendingMessage }
  | { type: 'SEND_ACKNOWLEDGED'; clientMessageId: string; messageId: string; seq: number }
  | { type: 'SEND_FAILED'; clientMessageId: string; failure: string }
  | { type: 'RETRY_SEND'; roomId: string; clientMessageId: string }
  | { type: 'HISTORY_LOADING'; roomId: string }
  | { type: 'HISTORY_LOADED'; roomId: string; messages: LoggedMessage[]; olderCursor?: string; replace: boolean }
  | { type: 'HISTORY_FAILED'; roomId: string }
  | { type: 'PINS_LOADED'; roomId: string; messageIds: string[] }
  | { type: 'PLANS_LOADED'; roomId: string; plans: { runId: string; plan: Plan }[] }
  | { type: 'RUNS_LOADED'; roomId: string; runs: RunUsage[] }
  | { type: 'TASKS_LOADED'; roomId: string; tasks: Task[] }
  | { type: 'TASK_CHANGED'; roomId: string; task: Task }
  | { type: 'TASK_REMOVED'; roomId: string; taskId: string }
  | { type: 'PERMISSION_REQUESTED'; permission: Permission }
  | {
      type: 'PERMISSION_RESOLVED';
      requestId: string;
      decision: 'allow' | 'deny' | 'timeout';
      decidedByName?: string;
      reason?: string;
    }
  | { type: 'TERMINAL_DATA'; roomId: string; agentId: string; agentName: string; data: string }
  | { type: 'TYPING'; roomId: string; userId: string; name: string; until: number }
  | { type: 'PRESENCE'; userId: string; online: boolean }
  | { type: 'AGENT_STATUS'; agentId: string; agent: AgentState }
  | { type: 'POSITION'; position: string }
  /** Events were lost: all loaded state is stale. */
  | { type: 'RESYNC' }
  | { type: 'ROOMS_LOADED'; rooms: RoomEntry[] }
  | { type: 'ROOM_UPDATED'; room: RoomFrame; members?: MemberFrame[] }
  | { type: 'ROOM_REMOVED'; roomId: string }
  | {
      type: 'ROOM_PREFERENCES_SET';
      roomId: string;
      pinnedAt?: string;
      archivedAt?: string;
      notificationPref: NotificationPref;
    }
  | { type: 'ROOM_READ'; roomId: string; userId: string; lastReadAt: string }
  | { type: 'ROOM_OPENED'; roomId?: string }
  | { type: 'CONNECTION'; connection: Connection }
  | { type: 'SIGNED_IN'; id: string; names: string[] }
  | { type: 'SIGNED_OUT' };

export type ActionOf<T extends ChatAction['type']> = Extract<ChatAction, { type: T }>;
