import { Alert, Button, Modal, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import type { FormEvent, ReactNode } from 'react';
import { CodeField, PasswordField } from '../ui/field.tsx';
import { ApiFailure, call } from './call.ts';
import { passkeysWork, signInWithPasskey } from './sign-in.ts';

export default function ReauthDialog(props: {
  asking: boolean;
  end: (signedIn: boolean) => void;
}): ReactNode {
  return (
    <Modal opened={props.asking} onClose={() => props.end(false)} title="Is it still you?" zIndex={1000}>
      {props.asking ? <Form end={props.end} /> : null}
    </Modal>
  );
}

function Form({ end }: { end: (signedIn: boolean) => void }): ReactNode {
  const [password, setPassword] = useState('');
  const [code, setCode] = useState('');
  const [twoFactor, setTwoFactor] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const [pending, setPending] = useState(false);
  const run = async (prove: () => Promise<unknown>): Promise<void> => {
    setPending(true);
    setProblem(null);
    try {
      if (await prove()) return end(true);
      setProblem('The browser gave no passkey. Try again, or use your password.');
    } catch (error) {
      if (error instanceof ApiFailure && error.code === 'second_factor_required') setTwoFactor(true);
      else setProblem((error as Error).message);
    }
    setPending(false);
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    void run(() => call('session.reauth', { password, ...(code === '' ? {} : { code }) }, null));
  };
  return (
    <form onSubmit={submit}>
      <Stack>
        <Text>This change needs a sign-in within the last 15 minutes.</Text>
        <PasswordField
          label="Password"
          autoComplete="current-password"
          value={password}
          set={setPassword}
          data-autofocus
          required
        />
        {twoFactor ? <CodeField value={code} set={setCode} /> : null}
        {problem === null ? null : (
          <Alert color="red" variant="light" role="alert">
            {problem}
          </Alert>
        )}
        <Button type="submit" loading={pending}>
          Confirm it is you
        </Button>
        {passkeysWork() ? (
          <Button variant="default" disabled={pending} onClick={() => void run(signInWithPasskey)}>
            Use a passkey
          </Button>
        ) : null}
      </Stack>
    </form>
  );
}
