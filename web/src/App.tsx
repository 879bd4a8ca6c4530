import { useEffect } from 'react';
import { AuthPage, AuthLayout } from './auth/AuthPage';
import { useRoute } from './router';
import { Shell } from './Shell';
import { resume, useSession } from './session/session';
import { text } from './text';
import { Boundary } from './ui/boundary';

export function App() {
  return (
    <Boundary className="h-full">
      <Content />
    </Boundary>
  );
}

/** Chooses the page from the sign-in state and the address. */
function Content() {
  const session = useSession();
  const route = useRoute();
  switch (session.state) {
    case 'unknown':
      return <div role="status" aria-label={text.loading} className="h-full bg-ground" />;
    case 'unreachable':
      return <Unreachable />;
    case 'out':
      return <AuthPage route={route} />;
    case 'in':
      return <Shell key={session.user.id} route={route} />;
  }
}

const RETRY_INTERVAL_MS = 2000;

function Unreachable() {
  useEffect(() => {
    const timer = setInterval(() => void resume(), RETRY_INTERVAL_MS);
    return () => clearInterval(timer);
  }, []);
  return <AuthLayout title={text.auth.unreachable} lead={text.auth.unreachableLead} />;
}
