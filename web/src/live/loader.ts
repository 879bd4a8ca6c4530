/**
 * Loads state over REST: the room list, members, agents, tasks and history.
 *
 * Loads a history only after the connection follows all rooms, so that no message is missed between the two, and loads
 * it again when it is stale and its room is open.
 * Never sends messages of the user, and changes the state only through actions.
 */
import { apiResult } from '../api/http';
import { queries } from '../api/queries';
import { dispatch, flush, useChat } from '../chat/store';
import type { Task } from '../generated/api';
import { ChangeCollector, type Changes } from './changes';
import type { ServerFrame, UiEvent } from './frames';
import { HistoryLoader } from './history';
import { requestAgent, requestRoom, requestRooms } from './rooms';

/** Maximum number of agents per room whose status is requested. */
const MAX_AGENTS = 20;

export class Loader {
  readonly history = new HistoryLoader();
  readonly #changes = new ChangeCollector((changes) => this.#reloadChanged(changes));
  #isFollowing = false;

  stop(): void {
    this.#changes.clear();
    this.history.stop();
  }

  /** Loads a room that is opened, if it is not loaded already. */
  open(roomId: string): void {
    if (this.#isFollowing) void this.history.load(roomId);
    void this.loadRoom(roomId);
  }

  /** For a new connection, which does not follow any room yet. */
  resume(): void {
    this.#isFollowing = false;
  }

  /** Loads state that is not resumed: the room list, and the members of the open room. */
  async reload(): Promise<void> {
    const { openRoom } = useChat.getState();
    await this.refreshRooms().catch(ignoreError);
    if (openRoom !== undefined) void this.loadRoom(openRoom);
  }

  onFrame(frame: ServerFrame): void {
    switch (frame.type) {
      case 'server:following':
        this.#isFollowing = true;
        this.#loadOpenRoom();
        break;
      case 'server:room_removed':
        // If the user is added again at once, the next frame must find the room removed.
        flush();
        break;
      case 'server:room_update':
        if (!(frame.room.id in useChat.getState().rooms)) this.#addRoom(frame.room.id);
        break;
      case 'server:event':
        this.#onEvent(frame.event);
        break;
      default:
    }
  }

  #onEvent(event: UiEvent): void {
    if (event.kind !== 'run') return;
    if (event.phase === 'sync') this.#changes.add(event);
    else if (event.phase === 'resync') {
      // `server:following` comes next, and the history of the open room is loaded then.
      this.#changes.add({});
    }
  }

  #loadOpenRoom(): void {
    flush();
    const { openRoom } = useChat.getState();
    if (openRoom !== undefined) void this.history.load(openRoom);
  }

  /** For a room to which the user was just added. It can be open already: the user was removed and added again. */
  #addRoom(roomId: string): void {
    void this.refreshRooms().catch(ignoreError);
    if (useChat.getState().openRoom === roomId) this.open(roomId);
  }

  /** Reads again what changed. Other rooms load their members when they are opened. */
  #reloadChanged({ rooms, agents, isHubWide }: Changes): void {
    const { openRoom, agents: known } = useChat.getState();
    if (isHubWide || rooms.size > 0) void this.refreshRooms().catch(ignoreError);
    if (openRoom !== undefined && (isHubWide || rooms.has(openRoom))) {
      void this.loadRoom(openRoom, isHubWide ? undefined : known);
    }
    for (const agentId of agents) {
      if (agentId in known) void loadAgent(agentId).catch(ignoreError);
    }
    if (isHubWide) return void queries.invalidateQueries();
    if (agents.size > 0) void queries.invalidateQueries({ queryKey: ['agents'] });
    for (const roomId of rooms) void queries.invalidateQueries({ queryKey: ['missions', roomId] });
  }

  async refreshRooms(): Promise<void> {
    const rooms = await requestRooms();
    dispatch({ type: 'ROOMS_LOADED', rooms });
  }

  /** Loads the members and pins of a room, and the current status of its agents: of all, or of those not in `known`. */
  async loadRoom(roomId: string, known: object = {}): Promise<void> {
    try {
      const { room, members, pins } = await requestRoom(roomId);
      dispatch({ type: 'ROOM_UPDATED', room, members });
      dispatch({ type: 'PINS_LOADED', roomId, messageIds: pins });
      const agents = members.filter(({ memberType, memberId }) => memberType === 'agent' && !(memberId in known));
      await Promise.all(agents.slice(0, MAX_AGENTS).map((member) => loadAgent(member.memberId)));
    } catch {
      // The next room update brings the details, or the room was deleted.
    }
  }

  /** Loads the tasks of a room, and its members as assignees. */
  async loadTasks(roomId: string): Promise<void> {
    void this.loadRoom(roomId);
    const tasks = await apiResult<Task[]>('GET', `/api/tasks/rooms/${roomId}`);
    dispatch({ type: 'TASKS_LOADED', roomId, tasks });
  }
}

/** Loads the current status of an agent. Later changes arrive as frames. */
async function loadAgent(agentId: string): Promise<void> {
  dispatch({ type: 'AGENT_STATUS', agentId, agent: await requestAgent(agentId) });
}

/** Error handler for requests that are repeated on the next connection. */
function ignoreError(): void {}
