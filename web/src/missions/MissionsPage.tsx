import { useQueries } from '@tanstack/react-query';
import { Target } from 'lucide-react';
import { useChat } from '../chat/store';
import type { RoomEntry } from '../chat/state';
import { stripDirectionMarks } from '../markdown/hiddenCharacters';
import { missionPath } from '../router';
import { text } from '../text';
import { Link } from '../ui/link';
import { EmptyState, Page } from '../ui/page';
import { MissionPage } from './MissionPage';
import { hasUsedAllPrompts, missionsOf, type Mission } from './missions';

/** Maximum number of rooms in the overview. The missions of others are reachable from their rooms. */
const MAX_ROOMS = 40;

/** Mission of one room, or an overview of all rooms. */
export default function MissionsPage({ roomId, isWide }: { roomId: string | undefined; isWide: boolean }) {
  return roomId === undefined ? <Overview isWide={isWide} /> : <MissionPage roomId={roomId} isWide={isWide} />;
}

function Overview({ isWide }: { isWide: boolean }) {
  const rooms = useChat((state) => state.rooms);
  const shownRooms = Object.values(rooms)
    .filter((room) => room.archivedAt === undefined)
    .toSorted((a, b) => (b.recent?.createdAt ?? '').localeCompare(a.recent?.createdAt ?? ''))
    .slice(0, MAX_ROOMS);
  const queries = useQueries({ queries: shownRooms.map((room) => missionsOf(room.id)) });
  const active = shownRooms.flatMap((room, index) => {
    const mission = queries[index]?.data?.find((candidate) => candidate.active);
    return mission === undefined ? [] : [{ room, mission }];
  });
  const isBusy = queries.some((query) => query.isPending);
  const idle = shownRooms.filter((room) => room.role !== 'member' && !active.some((entry) => entry.room === room));
  return (
    <Page title={text.missions.heading} isWide={isWide}>
      <div className="space-y-10" aria-busy={isBusy}>
        {!isBusy && active.length === 0 && <EmptyState title={text.missions.none} lead={text.missions.noneLead} />}
        {active.length > 0 && (
          <ul aria-label={text.missions.active} className="space-y-3">
            {active.map(({ room, mission }) => (
              <Row key={room.id} room={room} mission={mission} />
            ))}
          </ul>
        )}
        {!isBusy && idle.length > 0 && (
          <section>
            <h2 className="mb-2 font-semibold tracking-tight">{text.missions.addTo}</h2>
            <ul aria-label={text.missions.addTo} className="flex flex-wrap gap-2">
              {idle.map((room) => (
                <li key={room.id}>
                  <Link href={missionPath(room.id)} className="block rounded-lg border px-3 py-1 text-sm hover:bg-hover">
                    {room.name}
                  </Link>
                </li>
              ))}
            </ul>
          </section>
        )}
      </div>
    </Page>
  );
}

function Row({ room, mission }: { room: RoomEntry; mission: Mission }) {
  return (
    <li>
      <Link href={missionPath(room.id)} className="flex gap-3.5 rounded-2xl border bg-raised p-4 hover:border-line-strong">
        <Target size={18} aria-hidden className="mt-0.5 shrink-0 text-accent" />
        <span className="min-w-0 flex-1">
          <span className="line-clamp-2 font-medium">{stripDirectionMarks(mission.text)}</span>
          <span className="block text-xs text-faint">
            {[room.name, text.missions.promptCount(mission.prompts, mission.max_prompts), hasUsedAllPrompts(mission) ? text.missions.promptsUsedUp : '']
              .filter(Boolean)
              .join(' · ')}
          </span>
        </span>
      </Link>
    </li>
  );
}
