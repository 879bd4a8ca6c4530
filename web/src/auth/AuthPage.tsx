/** Pages for users who are not signed in: first-run setup, registration by invitation, and sign-in. */
import { Eye, EyeOff } from 'lucide-react';
import { useEffect, useState, type FormEvent, type ReactNode } from 'react';
import { RequestProblem } from '../api/http';
import { prepareRichText } from '../markdown/MessageText';
import { navigate, type Route } from '../router';
import { login, register, setUp, verifyCode } from '../session/session';
import { text } from '../text';
import { Button } from '../ui/button';
import { Field } from '../ui/field';

const TEXT = text.auth;

/** Delay before the Markdown renderer is preloaded: the form is drawn first, and no user signs in faster. */
const PRELOAD_DELAY_MS = 500;

export function AuthPage({ route }: { route: Route }) {
  useEffect(() => {
    const timer = setTimeout(prepareRichText, PRELOAD_DELAY_MS);
    return () => clearTimeout(timer);
  }, []);
  if (route.name === 'setup') return <NewAccountForm kind="setup" token={route.token} />;
  if (route.name === 'register') return <NewAccountForm kind="register" token={route.token} />;
  return <LoginForm />;
}

/** Layout of the auth pages, with the logo above the title. */
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

/** Submits a form, and keeps the hub's error for it. */
function useForm(send: (form: FormData) => Promise<void>) {
  const [problem, setProblem] = useState<RequestProblem>();
  const [isSending, setSending] = useState(false);
  const onSubmit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    setSending(true);
    setProblem(undefined);
    send(new FormData(event.currentTarget))
      .catch((failure: unknown) =>
        setProblem(failure instanceof RequestProblem ? failure : new RequestProblem(0, { error: TEXT.unreachable })),
      )
      .finally(() => setSending(false));
  };
  return { onSubmit, problem, isSending };
}

function fieldError(problem: RequestProblem | undefined, field: string): string | undefined {
  const message = problem?.fields[field];
  return message === undefined ? undefined : TEXT.fieldError(message);
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
      label={TEXT.password}
      hint={isNew ? TEXT.passwordHint : undefined}
      problem={problem}
      name="password"
      type={isShown ? 'text' : 'password'}
      autoComplete={isNew ? 'new-password' : 'current-password'}
      className="pr-11"
      required
    >
      <button
        type="button"
        aria-label={isShown ? TEXT.hidePassword : TEXT.showPassword}
        className="absolute inset-y-0 right-0 flex w-10 items-center justify-center rounded-r-lg text-faint hover:text-ink"
        onClick={() => setShown(!isShown)}
      >
        {isShown ? <EyeOff size={17} /> : <Eye size={17} />}
      </button>
    </Field>
  );
}

function UsernameField({ hint, problem }: { hint?: string; problem?: string }) {
  return (
    <Field
      label={TEXT.username}
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

function SubmitButton({ isSending, children }: { isSending: boolean; children: string }) {
  return (
    <Button variant="primary" type="submit" className="h-10 w-full" disabled={isSending}>
      {children}
    </Button>
  );
}

function NewAccountForm({ kind, token }: { kind: 'setup' | 'register'; token: string }) {
  const { onSubmit, problem, isSending } = useForm(async (form) => {
    const displayName = fieldValue(form, 'displayName').trim();
    const account = {
      token,
      username: fieldValue(form, 'username'),
      password: fieldValue(form, 'password'),
      ...(displayName !== '' && { displayName }),
    };
    await (kind === 'setup' ? setUp(account) : register(account));
    navigate('/app/', 'replace');
  });
  const [title, lead, submitLabel] =
    kind === 'setup'
      ? [TEXT.setupTitle, TEXT.setupLead, TEXT.setupSubmit]
      : [TEXT.registerTitle, TEXT.registerLead, TEXT.registerSubmit];
  const isUsed = problem?.status === 404;
  return (
    <AuthLayout title={title} lead={lead}>
      <form onSubmit={onSubmit} className="space-y-4">
        <UsernameField hint={TEXT.usernameHint} problem={fieldError(problem, 'username')} />
        <Field
          label={`${TEXT.displayName} (${TEXT.optional})`}
          problem={fieldError(problem, 'displayName')}
          name="displayName"
          autoComplete="name"
        />
        <PasswordField isNew problem={fieldError(problem, 'password')} />
        {isUsed ? (
          <p role="alert" className="rounded-lg bg-danger-soft px-3 py-2 text-sm text-danger">
            {TEXT.linkUsed}{' '}
            <button type="button" className="underline" onClick={() => navigate('/', 'replace')}>
              {TEXT.goToSignIn}
            </button>
          </p>
        ) : (
          <FormProblem problem={problem} />
        )}
        <SubmitButton isSending={isSending}>{submitLabel}</SubmitButton>
      </form>
    </AuthLayout>
  );
}

function LoginForm() {
  const [totpToken, setTotpToken] = useState<string>();
  const password = useForm(async (form) => {
    const challenge = await login(fieldValue(form, 'username'), fieldValue(form, 'password'));
    setTotpToken(challenge?.totpToken);
  });
  const code = useForm((form) => verifyCode(totpToken ?? '', fieldValue(form, 'code').trim()));
  if (totpToken !== undefined) {
    return (
      <AuthLayout title={TEXT.codeTitle} lead={TEXT.codeLead}>
        <form onSubmit={code.onSubmit} className="space-y-4">
          <Field
            label={TEXT.code}
            name="code"
            autoComplete="one-time-code"
            className="font-mono text-lg tracking-widest"
            autoFocus
            required
          />
          <FormProblem problem={code.problem} />
          <SubmitButton isSending={code.isSending}>{TEXT.codeSubmit}</SubmitButton>
        </form>
      </AuthLayout>
    );
  }
  return (
    <AuthLayout title={TEXT.loginTitle} lead={TEXT.loginLead}>
      <form onSubmit={password.onSubmit} className="space-y-4">
        <UsernameField />
        <PasswordField isNew={false} />
        <FormProblem problem={password.problem} />
        <SubmitButton isSending={password.isSending}>{TEXT.loginSubmit}</SubmitButton>
      </form>
    </AuthLayout>
  );
}

function fieldValue(form: FormData, name: string): string {
  const value = form.get(name);
  return typeof value === 'string' ? value : '';
}
