import { useState } from 'react';
import { apiRequest, apiResult } from '../api/http';
import type { BackupCodes, TotpSetup, User } from '../generated/api';
import { useSession, userChanged } from '../session/session';
import { text } from '../text';
import { Button } from '../ui/button';
import { Field } from '../ui/field';
import { Block, Problem } from './Block';
import { useSubmit } from './useSubmit';

type Stage = { name: 'rest' } | { name: 'offered'; setup: TotpSetup } | { name: 'codes'; codes: string[] };

export function SecondFactorSettings() {
  const session = useSession();
  const [stage, setStage] = useState<Stage>({ name: 'rest' });
  const [word, setWord] = useState('');
  const { attempt, problem, isBusy } = useSubmit();
  if (session.state !== 'in') return null;
  const isOn = session.user.totpEnabled;
  const refreshUser = async () => userChanged(await apiResult<User>('GET', '/api/users/me'));
  const offer = () =>
    attempt(async () => setStage({ name: 'offered', setup: await apiResult<TotpSetup>('POST', '/api/auth/setup-totp') }));
  const confirm = () =>
    attempt(async () => {
      const { backupCodes } = await apiResult<BackupCodes>('POST', '/api/auth/verify-totp-setup', { code: word.trim() });
      setWord('');
      setStage({ name: 'codes', codes: backupCodes });
      await refreshUser();
    });
  const turnOff = () =>
    attempt(async () => {
      await apiRequest('POST', '/api/auth/disable-totp', { password: word });
      setWord('');
      setStage({ name: 'rest' });
      await refreshUser();
    });
  return (
    <Block title={text.settings.factor} lead={isOn ? text.settings.factorOn : text.settings.factorOff}>
      {stage.name === 'codes' && (
        <div className="rounded-xl border bg-raised p-4">
          <p className="text-sm">{text.settings.factorCodes}</p>
          <ul className="mt-3 grid grid-cols-2 gap-x-6 gap-y-1 font-mono text-sm">
            {stage.codes.map((code) => (
              <li key={code}>{code}</li>
            ))}
          </ul>
        </div>
      )}
      {stage.name === 'offered' && (
        <>
          <p className="text-sm">{text.settings.factorScan}</p>
          <p className="rounded-lg bg-code px-3 py-2 font-mono text-sm break-all select-all">{stage.setup.secret}</p>
          <p>
            <a className="text-sm text-accent underline" href={stage.setup.uri}>
              {text.settings.factorOpen}
            </a>
          </p>
          <Field
            label={text.auth.code}
            inputMode="numeric"
            autoComplete="one-time-code"
            value={word}
            onChange={({ target }) => setWord(target.value)}
          />
          <Button look="primary" disabled={isBusy || word.trim() === ''} onClick={() => void confirm()}>
            {text.settings.factorConfirm}
          </Button>
        </>
      )}
      {isOn && stage.name !== 'offered' && (
        <div className="flex items-end gap-3">
          <div className="flex-1">
            <Field
              label={text.settings.factorPassword}
              type="password"
              autoComplete="current-password"
              value={word}
              onChange={({ target }) => setWord(target.value)}
            />
          </div>
          <Button look="danger" className="h-10" disabled={isBusy || word === ''} onClick={() => void turnOff()}>
            {text.settings.factorTurnOff}
          </Button>
        </div>
      )}
      {!isOn && stage.name === 'rest' && (
        <Button disabled={isBusy} onClick={() => void offer()}>
          {text.settings.factorSetUp}
        </Button>
      )}
      <Problem>{problem}</Problem>
    </Block>
  );
}
