/** Translates frames of the hub to actions. The reducer does not depend on the wire format. */
import type { ChatAction } from '../chat/actions';
import { fromEvent } from './events';
import type { ServerFrame } from './frames';
import { fromMessage, resultOf, toolOf } from './messages';

/** Time that a user counts as typing after a typing frame. */
const TYPING_MS = 4000;

export function translate(frame: ServerFrame, now: number): ChatAction[] {
  const actions = actionsFor(frame, now);
  const position = 'position' in frame ? frame.position : undefined;
  return position === undefined ? actions : [...actions, { type: 'POSITION', position }];
}

function actionsFor(frame: ServerFrame, now: number): ChatAction[] {
  switch (frame.type) {
    case 'server:new_message':
    case 'server:message_complete':
      return [{ type: 'PUSH_MESSAGE', message: fromMessage(frame.message), isNew: true }];
    case 'server:message_edited':
      return [{ type: 'PUSH_MESSAGE', message: fromMessage(frame.message), isNew: false }];
    case 'server:message_deleted':
      return [{ type: 'REMOVE_MESSAGES', roomId: frame.roomId, messageIds: [frame.messageId] }];
    case 'server:room_rewound':
      return [{ type: 'REMOVE_MESSAGES', roomId: frame.roomId, messageIds: frame.removedMessageIds }];
    case 'server:message_ack': {
      const { clientMessageId, messageId, seq } = frame;
      return [{ type: 'SEND_ACKNOWLEDGED', clientMessageId, messageId, seq }];
    }
    case 'server:error': {
      const { clientMessageId, message } = frame;
      return clientMessageId === undefined ? [] : [{ type: 'SEND_FAILED', clientMessageId, failure: message }];
    }
    case 'server:reaction_update': {
      const { roomId, messageId, reactions } = frame;
      return [{ type: 'SET_REACTIONS', roomId, messageId, reactions }];
    }
    case 'server:message_pinned':
    case 'server:message_unpinned': {
      const pinned = frame.type === 'server:message_pinned';
      return [{ type: 'SET_PINNED', roomId: frame.roomId, messageId: frame.messageId, pinned }];
    }
    case 'server:room_update': {
      const { room, members } = frame;
      return [{ type: 'ROOM_UPDATED', room, members }];
    }
    case 'server:room_removed':
      return [{ type: 'ROOM_REMOVED', roomId: frame.roomId }];
    case 'server:read_receipt': {
      const { roomId, userId, lastReadAt } = frame;
      return [{ type: 'ROOM_READ', roomId, userId, lastReadAt }];
    }
    case 'server:room_state': {
      const { roomId, pinnedAt, archivedAt, notificationPref } = frame;
      return [{ type: 'ROOM_PREFERENCES_SET', roomId, pinnedAt, archivedAt, notificationPref }];
    }
    case 'server:room_cleared':
      return [{ type: 'CLEAR_MESSAGES', roomId: frame.roomId }];
    case 'server:task_update': {
      const { roomId, task } = frame;
      if ('removed' in frame) return [{ type: 'TASK_REMOVED', roomId, taskId: task.id }];
      return [{ type: 'TASK_CHANGED', roomId, task: frame.task }];
    }
    case 'server:typing': {
      const { roomId, userId, username } = frame;
      return [{ type: 'TYPING', roomId, userId, name: username, until: now + TYPING_MS }];
    }
    case 'server:presence':
      return [{ type: 'PRESENCE', userId: frame.userId, online: frame.online }];
    case 'server:message_chunk':
      return chunk(frame);
    case 'server:terminal_data': {
      const { roomId, agentId, agentName, data } = frame;
      return [{ type: 'TERMINAL_DATA', roomId, agentId, agentName, data }];
    }
    case 'server:agent_status': {
      const { id, name, status, model, queueDepth } = frame.agent;
      return [{ type: 'AGENT_STATUS', agentId: id, agent: { name, status, model, queueDepth } }];
    }
    case 'server:permission_request': {
      const { type: _, toolInput = {}, roomId, ...request } = frame;
      // A request of a run without a room belongs to no chat.
      if (roomId === undefined) return [];
      return [{ type: 'PERMISSION_REQUESTED', permission: { ...request, roomId, toolInput } }];
    }
    case 'server:permission_request_expired':
      return [{ type: 'PERMISSION_RESOLVED', requestId: frame.requestId, decision: 'timeout' }];
    case 'server:permission_resolved': {
      const { requestId, decision, decidedByName, reason } = frame;
      // Only question sets are answered, and they are events.
      if (decision === 'answered') return [];
      return [{ type: 'PERMISSION_RESOLVED', requestId, decision, decidedByName, reason }];
    }
    case 'server:event':
      return fromEvent(frame.event);
    // The loader and the transport react to these; the others answer requests that the page does not make.
    case 'server:auth_result':
    case 'server:following':
    case 'server:pong':
    case 'server:bookmark_update':
    case 'server:room_joined':
    case 'server:resync':
    case 'server:events_subscribed':
    case 'server:agent_info':
      return [];
    default:
      return unknown(frame);
  }
}

/** A hub that is newer than the page may send frames of other types. A type that is not listed above does not compile. */
function unknown(_frame: never): ChatAction[] {
  return [];
}

function chunk(frame: Extract<ServerFrame, { type: 'server:message_chunk' }>): ChatAction[] {
  const { roomId, agentId, agentName, messageId, chunk: part, first } = frame;
  // A reply of a run without a room belongs to no chat.
  if (roomId === undefined) return [];
  const reply = { roomId, agentId, agentName, messageId };
  const begun: ChatAction[] = first === true ? [{ type: 'BEGIN_REPLY', ...reply }] : [];
  switch (part.type) {
    case 'text':
      return [...begun, { type: 'APPEND_TOKEN', token: part.content, thinking: false, ...reply }];
    case 'thinking':
      return [...begun, { type: 'APPEND_TOKEN', token: part.content, thinking: true, ...reply }];
    case 'tool_use': {
      const { id, name, input } = toolOf(part, 0);
      return [...begun, { type: 'SET_ACTIVITY', tool: { id, name, input }, ...reply }];
    }
    case 'tool_result': {
      const { id, isError } = resultOf(part);
      return [...begun, { type: 'ACTIVITY_DONE', toolId: id, output: part.content, isError, ...reply }];
    }
    case 'error':
      return [...begun, { type: 'APPEND_ERROR', text: part.content, ...reply }];
    default:
      return begun;
  }
}
