/** Everything before the first room: setting the hub up, taking an invitation, signing in. */
import { Eye, EyeOff } from 'lucide-react';
import { useEffect, useState, type FormEvent, type ReactNode } from 'react';
import { RequestProblem } from '../api/http';
import { prepareRichText } from '../markdown/MessageText';
import { navigate, type Route } from '../router';
import { login, register, setUp, verifyCode } from '../session/session';
import { text } from '../text';
import { Button } from '../ui/button';
import { Field } from '../ui/field';

const WORDS = text.auth;

/** Nobody is in sooner, and the door itself is drawn by then. */
const SOON_MS = 500;

export function AuthPage({ route }: { route: Route }) {
  useEffect(() => {
    const timer = setTimeout(prepareRichText, SOON_MS);
    return () => clearTimeout(timer);
  }, []);
  if (route.name === 'setup') return <NewAccountForm kind="setup" token={route.token} />;
  if (route.name === 'register') return <NewAccountForm kind="register" token={route.token} />;
  return <LoginForm />;
}

/** The frame around each of them, with our sign above. */
export function AuthLayout({ title, lead, children }: { title: string; lead: string; children?: ReactNode }) {
  return (
    <main className="flex h-full items-start justify-center overflow-y-auto px-4 py-[12vh]">
      <div className="w-full max-w-sm animate-appear">
        <img src="/app/icon.svg" alt="" width={44} height={44} className="mb-6" />
        <h1 className="text-2xl font-semibold tracking-tight">{title}</h1>
        <p className="mt-1.5 mb-7 text-soft">{lead}</p>
        {children}
      </div>
    </main>
  );
}

/** Sends a form once, and shows what the hub has against it. */
function useForm(send: (form: FormData) => Promise<void>) {
  const [problem, setProblem] = useState<RequestProblem>();
  const [isSending, setSending] = useState(false);
  const onSubmit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    setSending(true);
    setProblem(undefined);
    send(new FormData(event.currentTarget))
      .catch((failure: unknown) =>
        setProblem(failure instanceof RequestProblem ? failure : new RequestProblem(0, { error: WORDS.unreachable })),
      )
      .finally(() => setSending(false));
  };
  return { onSubmit, problem, isSending };
}

function fieldError(problem: RequestProblem | undefined, field: string): string | undefined {
  const words = problem?.fields[field];
  return words === undefined ? undefined : WORDS.flaw(words);
}

function FormProblem({ problem }: { problem: RequestProblem | undefined }) {
  if (problem === undefined || Object.keys(problem.fields).length > 0) return null;
  return (
    <p role="alert" className="rounded-lg bg-danger-soft px-3 py-2 text-sm text-danger">
      {problem.message}
    </p>
  );
}

function PasswordField({ isNew, problem }: { isNew: boolean; problem?: string }) {
  const [isShown, setShown] = useState(false);
  return (
    <Field
      label={WORDS.password}
      hint={isNew ? WORDS.passwordHint : undefined}
      problem={problem}
      name="password"
      type={isShown ? 'text' : 'password'}
      autoComplete={isNew ? 'new-password' : 'current-password'}
      className="pr-11"
      required
    >
      <button
        type="button"
        aria-label={isShown ? WORDS.hide : WORDS.show}
        className="absolute inset-y-0 right-0 flex w-10 items-center justify-center rounded-r-lg text-faint hover:text-ink"
        onClick={() => setShown(!isShown)}
      >
        {isShown ? <EyeOff size={17} /> : <Eye size={17} />}
      </button>
    </Field>
  );
}

function NameField({ hint, problem }: { hint?: string; problem?: string }) {
  return (
    <Field
      label={WORDS.username}
      hint={hint}
      problem={problem}
      name="username"
      autoComplete="username"
      autoCapitalize="none"
      spellCheck={false}
      autoFocus
      required
    />
  );
}

function Go({ isSending, children }: { isSending: boolean; children: string }) {
  return (
    <Button look="primary" type="submit" className="h-10 w-full" disabled={isSending}>
      {children}
    </Button>
  );
}

function NewAccountForm({ kind, token }: { kind: 'setup' | 'register'; token: string }) {
  const { onSubmit, problem, isSending } = useForm(async (form) => {
    const displayName = said(form, 'displayName').trim();
    const account = {
      token,
      username: said(form, 'username'),
      password: said(form, 'password'),
      ...(displayName !== '' && { displayName }),
    };
    await (kind === 'setup' ? setUp(account) : register(account));
    navigate('/app/', 'replace');
  });
  const [title, lead, go] =
    kind === 'setup'
      ? [WORDS.setupTitle, WORDS.setupLead, WORDS.setupGo]
      : [WORDS.registerTitle, WORDS.registerLead, WORDS.registerGo];
  const isUsed = problem?.status === 404;
  return (
    <AuthLayout title={title} lead={lead}>
      <form onSubmit={onSubmit} className="space-y-4">
        <NameField hint={WORDS.usernameHint} problem={fieldError(problem, 'username')} />
        <Field
          label={`${WORDS.displayName} (${WORDS.optional})`}
          problem={fieldError(problem, 'displayName')}
          name="displayName"
          autoComplete="name"
        />
        <PasswordField isNew problem={fieldError(problem, 'password')} />
        {isUsed ? (
          <p role="alert" className="rounded-lg bg-danger-soft px-3 py-2 text-sm text-danger">
            {WORDS.linkUsed}{' '}
            <button type="button" className="underline" onClick={() => navigate('/', 'replace')}>
              {WORDS.toLogin}
            </button>
          </p>
        ) : (
          <FormProblem problem={problem} />
        )}
        <Go isSending={isSending}>{go}</Go>
      </form>
    </AuthLayout>
  );
}

function LoginForm() {
  const [totpToken, setTotpToken] = useState<string>();
  const password = useForm(async (form) => {
    const more = await login(said(form, 'username'), said(form, 'password'));
    setTotpToken(more?.totpToken);
  });
  const code = useForm((form) => verifyCode(totpToken ?? '', said(form, 'code').trim()));
  if (totpToken !== undefined) {
    return (
      <AuthLayout title={WORDS.codeTitle} lead={WORDS.codeLead}>
        <form onSubmit={code.onSubmit} className="space-y-4">
          <Field
            label={WORDS.code}
            name="code"
            autoComplete="one-time-code"
            className="font-mono text-lg tracking-widest"
            autoFocus
            required
          />
          <FormProblem problem={code.problem} />
          <Go isSending={code.isSending}>{WORDS.codeGo}</Go>
        </form>
      </AuthLayout>
    );
  }
  return (
    <AuthLayout title={WORDS.loginTitle} lead={WORDS.loginLead}>
      <form onSubmit={password.onSubmit} className="space-y-4">
        <NameField />
        <PasswordField isNew={false} />
        <FormProblem problem={password.problem} />
        <Go isSending={password.isSending}>{WORDS.loginGo}</Go>
      </form>
    </AuthLayout>
  );
}

function said(form: FormData, name: string): string {
  const value = form.get(name);
  return typeof value === 'string' ? value : '';
}
