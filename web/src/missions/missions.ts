/** REST API of missions: goals that the agents of a room pursue on their own while they are idle. */
import { queryOptions } from '@tanstack/react-query';
import { apiRequest } from '../api/http';

export interface MissionAgent {
  id: string;
  idle_prompt?: string | null;
  idle_interval_secs?: number | null;
}

export interface Mission {
  id: string;
  active: boolean;
  text: string;
  project_root: string | null;
  session_id: string;
  /** Unix time in seconds, like all times of this API. */
  created_at: number;
  created_by: string | null;
  ended_at: number | null;
  prompts: number;
  max_prompts: number;
  agents: MissionAgent[];
}

/** Minimum interval between two idle prompts of an agent. */
export const MIN_IDLE_SECS = 30;
export const DEFAULT_IDLE_SECS = 60;
export const MAX_IDLE_SECS = 86_400;

/** Query for the missions of a room, active and ended, newest first. */
export function missionsOf(roomId: string) {
  return queryOptions({
    queryKey: ['missions', roomId],
    queryFn: async () => (await apiRequest<{ missions: Mission[] }>('GET', `/api/missions?${session(roomId)}`)).missions,
    retry: false,
  });
}

export function setMission(roomId: string, text: string, agents: MissionAgent[]): Promise<unknown> {
  return apiRequest('POST', '/api/mission', { session_id: roomId, text, agents });
}

export function endMission(roomId: string): Promise<unknown> {
  return apiRequest('DELETE', `/api/mission?${session(roomId)}`);
}

/** Whether the mission has used all its prompts. It continues when it is set again. */
export function hasUsedAllPrompts({ prompts, max_prompts }: Mission): boolean {
  return prompts >= max_prompts;
}

function session(roomId: string): string {
  return new URLSearchParams({ session_id: roomId }).toString();
}
