import { lazy, Suspense, useEffect, useRef } from 'react';
import { useChat } from './chat/store';
import { NewRoom } from './rooms/NewRoom';
import { RoomPage } from './rooms/RoomPage';
import { Sidebar } from './rooms/Sidebar';
import { homeRoom, lastRoom, rememberRoom } from './rooms/order';
import { navigate, roomPath, type Route } from './router';
import { useClient } from './session/session';
import { text } from './text';
import { useNotifications, useTitle } from './notify';
import { Boundary } from './ui/boundary';
import { DialogBoundary } from './ui/dialog';
import { useIsWide } from './ui/media';
import { showNewRoom, showPalette, useView } from './view';

const Palette = lazy(() => import('./palette/Palette'));
const Agents = lazy(() => import('./agents/AgentsPage'));
const Missions = lazy(() => import('./missions/MissionsPage'));
const Search = lazy(() => import('./search/SearchPage'));
const Tasks = lazy(() => import('./tasks/TasksPage'));
const Settings = lazy(() => import('./settings/Settings'));

/** Layout of the app for a signed-in user: the sidebar, and beside it the page of the current route. */
export function Shell({ route }: { route: Route }) {
  const isWide = useIsWide();
  const { palette, newRoom } = useView();
  const roomId = route.name === 'room' ? route.roomId : undefined;
  const shownRoom = route.name === 'tasks' ? route.roomId : roomId;
  useOpenRoom(roomId);
  useHomeRedirect(route, isWide);
  usePaletteKey();
  useTitle(shownRoom);
  useNotifications();
  const showsSidebar = isWide || isHome(route);
  return (
    <div className="flex h-full">
      {showsSidebar && (
        <Boundary className={isWide ? 'w-72 shrink-0 border-r' : 'w-full'}>
          <Sidebar roomId={shownRoom} place={route.name} isWide={isWide} />
        </Boundary>
      )}
      <Boundary key={routeKey(route)} className="min-w-0 flex-1 bg-surface">
        {route.name === 'room' && <RoomPage key={route.roomId} {...route} isWide={isWide} />}
        <Suspense>
          {route.name === 'agents' && <Agents agentId={route.agentId} isWide={isWide} />}
          {route.name === 'missions' && <Missions roomId={route.roomId} isWide={isWide} />}
          {route.name === 'search' && <Search query={route.query} isWide={isWide} />}
          {route.name === 'tasks' && <Tasks key={route.roomId} roomId={route.roomId} isWide={isWide} />}
          {route.name === 'settings' && <Settings section={route.section} isWide={isWide} />}
        </Suspense>
        {isWide && route.name === 'home' && <NoRoomSelected />}
      </Boundary>
      {newRoom && (
        <DialogBoundary onClose={() => showNewRoom(false)}>
          <NewRoom />
        </DialogBoundary>
      )}
      {palette && (
        <DialogBoundary onClose={() => showPalette(false)}>
          <Suspense>
            <Palette />
          </Suspense>
        </DialogBoundary>
      )}
    </div>
  );
}

/** Key of the page boundary. A new key resets a page that failed, so that navigation recovers from it. */
function routeKey(route: Route): string {
  const { roomId, agentId } = { roomId: undefined, agentId: undefined, ...route };
  return `${route.name} ${roomId ?? agentId ?? ''}`;
}

/** Setup and invitation links lead home when a user is already signed in. */
function isHome({ name }: Route): boolean {
  return name === 'home' || name === 'setup' || name === 'register';
}

function NoRoomSelected() {
  const isLoaded = useChat((state) => state.roomsLoaded);
  return (
    <main className="flex flex-1 items-center justify-center bg-surface text-faint">
      {isLoaded && <p>{text.rooms.selectRoom}</p>}
    </main>
  );
}

function useOpenRoom(roomId: string | undefined): void {
  const client = useClient();
  useEffect(() => {
    client.open(roomId);
    if (roomId !== undefined) rememberRoom(roomId);
  }, [client, roomId]);
}

/** Redirects the home route: on wide screens to the last open room, on phones to the only room. */
function useHomeRedirect(route: Route, isWide: boolean): void {
  const rooms = useChat((state) => state.rooms);
  const isAtHome = isHome(route);
  // On a phone the room list is a page of its own. After the first page the user can go back to it.
  const hasLeftHome = useRef(false);
  useEffect(() => {
    if (!isAtHome) {
      hasLeftHome.current = true;
      return;
    }
    const allRooms = Object.values(rooms);
    const target = isWide ? (allRooms.find((room) => room.id === lastRoom()) ?? homeRoom(allRooms)) : undefined;
    const only = allRooms.length === 1 && !hasLeftHome.current ? allRooms[0] : undefined;
    const room = target ?? only;
    if (room !== undefined) navigate(roomPath(room.id), 'replace');
    else if (location.pathname !== '/app/') navigate('/app/', 'replace');
  }, [isAtHome, isWide, rooms]);
}

function usePaletteKey(): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && !event.shiftKey && event.key.toLowerCase() === 'k') {
        event.preventDefault();
        showPalette(!useView.getState().palette);
      }
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
}
