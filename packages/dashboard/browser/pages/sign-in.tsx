import { Alert, Anchor, Button, Divider, Stack, Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import PasskeyIcon from 'lucide-react/icons/fingerprint-pattern';
import { useState } from 'react';
import type { FormEvent, ReactNode } from 'react';
import { Link } from 'wouter';
import { ApiFailure, call } from '../api/call.ts';
import { sessionKey } from '../api/session.ts';
import type { Session } from '../api/session.ts';
import { passkeysWork, signInWithPasskey } from '../api/sign-in.ts';
import { Card } from '../ui/card.tsx';
import { Icon } from '../ui/icon.tsx';
import { CodeField, Field, PasswordField } from '../ui/field.tsx';

export default function SignIn(): ReactNode {
  return (
    <Card title="Sign in" about={`to the dashboard at ${location.host}`}>
      <SignInForm />
      <Text size="sm" c="dimmed">
        First time? The first start of the service printed the owner’s e-mail and password. Others come by
        invitation, or{' '}
        <Anchor component={Link} href="/sign-up" inherit underline="always">
          sign up
        </Anchor>{' '}
        if this service allows it.
      </Text>
    </Card>
  );
}

export function SignInForm(): ReactNode {
  const client = useQueryClient();
  const [email, setEmail] = useState('');
  const [password, setPassword] = useState('');
  const [code, setCode] = useState('');
  const [secondFactor, setSecondFactor] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const [pending, setPending] = useState(false);

  const run = async (make: () => Promise<Session | null>): Promise<void> => {
    setPending(true);
    setProblem(null);
    try {
      const session = await make();
      if (session) client.setQueryData(sessionKey, session);
      else setProblem('The browser gave no passkey. Try again, or use your password.');
    } catch (error) {
      if (error instanceof ApiFailure && error.code === 'second_factor_required') setSecondFactor(true);
      else setProblem((error as Error).message);
    } finally {
      setPending(false);
    }
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    void run(() => call('session.create', { email, password, ...(secondFactor ? { code } : {}) }, null));
  };
  return (
    <form onSubmit={submit}>
      <Stack>
        {passkeysWork() ? (
          <>
            <Button
              variant="default"
              size="md"
              disabled={pending}
              leftSection={<Icon of={PasskeyIcon} />}
              onClick={() => void run(signInWithPasskey)}
            >
              Use a passkey
            </Button>
            <Divider label="or with a password" labelPosition="center" />
          </>
        ) : null}
        <Field
          label="E-mail"
          type="email"
          autoComplete="username webauthn"
          value={email}
          set={setEmail}
          required
          autoFocus
        />
        <PasswordField
          label="Password"
          autoComplete="current-password"
          value={password}
          set={setPassword}
          required
        />
        {secondFactor ? <CodeField value={code} set={setCode} autoFocus /> : null}
        {problem === null ? null : (
          <Alert color="red" variant="light" role="alert">
            {problem}
          </Alert>
        )}
        <Button type="submit" size="md" loading={pending}>
          Sign in
        </Button>
        <Anchor component={Link} href="/forgot" size="sm">
          Forgot your password?
        </Anchor>
      </Stack>
    </form>
  );
}
