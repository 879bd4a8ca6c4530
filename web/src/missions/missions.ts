/** Missions as the hub tells them: what agents of a room work on by themselves when nobody asks them for anything. */
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
  /** In seconds, as everything in this door. */
  created_at: number;
  created_by: string | null;
  ended_at: number | null;
  prompts: number;
  max_prompts: number;
  agents: MissionAgent[];
}

/** Agents are not asked more often than this. */
export const LEAST_SECONDS = 30;
export const USUAL_SECONDS = 60;
export const MOST_SECONDS = 86_400;

/** The newest first, the one that is under way among them. */
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

/** It has asked as often as it may, and goes on when it is set again. */
export function isSpent({ prompts, max_prompts }: Mission): boolean {
  return prompts >= max_prompts;
}

function session(roomId: string): string {
  return new URLSearchParams({ session_id: roomId }).toString();
}
