import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { apiRequest } from '../api/http';
import type { NewTurn } from '../generated/api';
import { Problem } from '../settings/Block';
import { useSubmit } from '../settings/useSubmit';
import { text } from '../text';
import { Button } from '../ui/button';
import { TextArea } from '../ui/field';
import { logOf, turnsOf } from './mail';

const MAX_PROMPT_CHARS = 100_000;

/** Form that starts a turn in a session, for a prompt of the owner. */
export function StartTurn({ agentId, session }: { agentId: string; session: string }) {
  const queries = useQueryClient();
  const { attempt, problem, isBusy } = useSubmit();
  const [prompt, setPrompt] = useState('');
  const [isStarted, setStarted] = useState(false);
  const start = () =>
    attempt(async () => {
      setStarted(false);
      const turn: NewTurn = { agentId, sessionId: session, prompt };
      await apiRequest('POST', '/api/turns', turn);
      setPrompt('');
      setStarted(true);
      await Promise.all([logOf(agentId, session), turnsOf(agentId)].map(({ queryKey }) => queries.invalidateQueries({ queryKey })));
    });
  return (
    <form
      aria-label={text.sessions.startTurnIn(session)}
      className="space-y-2"
      onSubmit={(event) => {
        event.preventDefault();
        void start();
      }}
    >
      <TextArea
        label={text.sessions.prompt}
        hint={text.sessions.promptHint}
        className="text-sm"
        maxLength={MAX_PROMPT_CHARS}
        value={prompt}
        onChange={({ target }) => setPrompt(target.value)}
      />
      <Problem>{problem}</Problem>
      <div className="flex items-center justify-end gap-3">
        <p role="status" className="text-sm text-soft empty:hidden">
          {isStarted && text.sessions.started}
        </p>
        <Button variant="primary" size="small" type="submit" disabled={isBusy || prompt.trim() === ''}>
          {text.sessions.startTurn}
        </Button>
      </div>
    </form>
  );
}
