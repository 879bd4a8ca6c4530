import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { useChat } from '../chat/store';
import type { RoomEntry } from '../chat/state';
import { stripDirectionMarks } from '../markdown/hiddenCharacters';
import { roomPath } from '../router';
import { useClient } from '../session/session';
import { Block, Problem } from '../settings/Block';
import { useSubmit } from '../settings/useSubmit';
import { text } from '../text';
import { Button } from '../ui/button';
import { EmptyState, Page } from '../ui/page';
import { fullTime } from '../ui/time';
import { MissionForm } from './MissionForm';
import { endMission, hasUsedAllPrompts, missionsOf, type Mission } from './missions';

/** Active mission and past missions of a room. */
export function MissionPage({ roomId, isWide }: { roomId: string; isWide: boolean }) {
  const client = useClient();
  const room = useChat((state) => state.rooms[roomId]);
  const missions = useQuery(missionsOf(roomId));
  useEffect(() => {
    void client.loader.loadRoom(roomId);
  }, [client, roomId]);
  if (room === undefined) return <Page title={text.missions.heading} isWide={isWide} children={null} />;
  const active = missions.data?.find((mission) => mission.active);
  const past = missions.data?.filter((mission) => !mission.active) ?? [];
  return (
    <Page title={text.missions.titleFor(room.name)} back={roomPath(roomId)} isWide={isWide}>
      <div className="space-y-10" aria-busy={missions.isPending}>
        <Problem>{missions.error?.message}</Problem>
        {missions.data !== undefined && <Now key={active?.id} room={room} active={active} />}
        {past.length > 0 && (
          <Block title={text.missions.past}>
            <ul aria-label={text.missions.past} className="divide-y rounded-xl border">
              {past.map((mission) => (
                <li key={mission.id} className="px-4 py-3 text-sm">
                  <p className="whitespace-pre-wrap">{stripDirectionMarks(mission.text)}</p>
                  <p className="mt-1 text-xs text-faint">{span(mission)}</p>
                </li>
              ))}
            </ul>
          </Block>
        )}
      </div>
    </Page>
  );
}

function Now({ room, active }: { room: RoomEntry; active: Mission | undefined }) {
  const [isWriting, setWriting] = useState(false);
  const mayChange = room.role !== 'member';
  if (isWriting) return <MissionForm room={room} mission={active} onDone={() => setWriting(false)} />;
  if (active !== undefined) return <Active room={room} mission={active} mayChange={mayChange} onChange={() => setWriting(true)} />;
  return (
    <EmptyState title={text.missions.none} lead={mayChange ? text.missions.noneLead : text.missions.notAllowed}>
      {mayChange && (
        <Button variant="primary" onClick={() => setWriting(true)}>
          {text.missions.add}
        </Button>
      )}
    </EmptyState>
  );
}

interface ActiveProps {
  room: RoomEntry;
  mission: Mission;
  mayChange: boolean;
  onChange: () => void;
}

function Active({ room, mission, mayChange, onChange }: ActiveProps) {
  const queries = useQueryClient();
  const { attempt, problem, isBusy } = useSubmit();
  const end = () =>
    attempt(async () => {
      await endMission(room.id);
      await queries.invalidateQueries({ queryKey: ['missions'] });
    });
  const nameOf = (id: string) => room.members.find((member) => member.memberId === id)?.displayName ?? id;
  return (
    <section aria-label={text.missions.active} className="rounded-2xl border bg-raised p-5">
      <p className="text-xs font-medium text-accent">{hasUsedAllPrompts(mission) ? text.missions.promptsUsedUp : text.missions.active}</p>
      <p className="mt-1 font-medium whitespace-pre-wrap">{stripDirectionMarks(mission.text)}</p>
      {mission.agents.length > 0 && (
        <ul className="mt-3 space-y-1 text-sm">
          {mission.agents.map((agent) => (
            <li key={agent.id}>
              <span className="font-medium">{nameOf(agent.id)}</span>{' '}
              <span className="text-faint">{text.missions.interval(agent.idle_interval_secs ?? undefined)}</span>
              {agent.idle_prompt != null && <span className="block text-soft">{agent.idle_prompt}</span>}
            </li>
          ))}
        </ul>
      )}
      <p className="mt-3 text-xs text-faint">
        {text.missions.promptCount(mission.prompts, mission.max_prompts)} · {span(mission)}
        {mission.project_root !== null && <span className="font-mono"> · {mission.project_root}</span>}
      </p>
      {mayChange && (
        <div className="mt-4 flex gap-2">
          <Button size="small" onClick={onChange}>
            {text.missions.edit}
          </Button>
          <Button size="small" variant="danger" disabled={isBusy} onClick={() => void end()}>
            {text.missions.end}
          </Button>
        </div>
      )}
      <Problem>{problem}</Problem>
    </section>
  );
}

function span({ created_at: from, ended_at: until }: Mission): string {
  return text.missions.span(fullTime(from * 1000), until === null ? undefined : fullTime(until * 1000));
}
