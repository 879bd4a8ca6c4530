import { useState } from 'react';
import { apiRequest, apiResult } from '../api/http';
import type { BackupCodes, TotpSetup, User } from '../generated/api';
import { useSession, userChanged } from '../session/session';
import { text } from '../text';
import { Button } from '../ui/button';
import { Field } from '../ui/field';
import { Block, Problem } from './Block';
import { useSubmit } from './useSubmit';

type SetupStep = { name: 'idle' } | { name: 'offered'; setup: TotpSetup } | { name: 'codes'; codes: string[] };

export function SecondFactorSettings() {
  const session = useSession();
  const [step, setStep] = useState<SetupStep>({ name: 'idle' });
  const [input, setInput] = useState('');
  const { attempt, problem, isBusy } = useSubmit();
  if (session.state !== 'in') return null;
  const isOn = session.user.totpEnabled;
  const refreshUser = async () => userChanged(await apiResult<User>('GET', '/api/users/me'));
  const offer = () =>
    attempt(async () => setStep({ name: 'offered', setup: await apiResult<TotpSetup>('POST', '/api/auth/setup-totp') }));
  const confirm = () =>
    attempt(async () => {
      const { backupCodes } = await apiResult<BackupCodes>('POST', '/api/auth/verify-totp-setup', { code: input.trim() });
      setInput('');
      setStep({ name: 'codes', codes: backupCodes });
      await refreshUser();
    });
  const turnOff = () =>
    attempt(async () => {
      await apiRequest('POST', '/api/auth/disable-totp', { password: input });
      setInput('');
      setStep({ name: 'idle' });
      await refreshUser();
    });
  return (
    <Block title={text.settings.factor} lead={isOn ? text.settings.factorOn : text.settings.factorOff}>
      {step.name === 'codes' && (
        <div className="rounded-xl border bg-raised p-4">
          <p className="text-sm">{text.settings.factorCodes}</p>
          <ul className="mt-3 grid grid-cols-2 gap-x-6 gap-y-1 font-mono text-sm">
            {step.codes.map((code) => (
              <li key={code}>{code}</li>
            ))}
          </ul>
        </div>
      )}
      {step.name === 'offered' && (
        <>
          <p className="text-sm">{text.settings.factorScan}</p>
          <p className="rounded-lg bg-code px-3 py-2 font-mono text-sm break-all select-all">{step.setup.secret}</p>
          <p>
            <a className="text-sm text-accent underline" href={step.setup.uri}>
              {text.settings.factorOpen}
            </a>
          </p>
          <Field
            label={text.auth.code}
            inputMode="numeric"
            autoComplete="one-time-code"
            value={input}
            onChange={({ target }) => setInput(target.value)}
          />
          <Button variant="primary" disabled={isBusy || input.trim() === ''} onClick={() => void confirm()}>
            {text.settings.factorConfirm}
          </Button>
        </>
      )}
      {isOn && step.name !== 'offered' && (
        <div className="flex items-end gap-3">
          <div className="flex-1">
            <Field
              label={text.settings.factorPassword}
              type="password"
              autoComplete="current-password"
              value={input}
              onChange={({ target }) => setInput(target.value)}
            />
          </div>
          <Button variant="danger" className="h-10" disabled={isBusy || input === ''} onClick={() => void turnOff()}>
            {text.settings.factorTurnOff}
          </Button>
        </div>
      )}
      {!isOn && step.name === 'idle' && (
        <Button disabled={isBusy} onClick={() => void offer()}>
          {text.settings.factorSetUp}
        </Button>
      )}
      <Problem>{problem}</Problem>
    </Block>
  );
}
