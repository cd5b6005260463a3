import { Alert, Button, Code, Group, Stack, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { renderSVG } from 'uqr';
import type { Account } from '@parley/protocol';
import { useCall, useChange } from '../api/hooks.ts';
import { createPasskey, passkeysWork } from '../api/sign-in.ts';
import { ConfirmButton } from '../ui/confirm.tsx';
import { Copy } from '../ui/copy.tsx';
import { Section } from '../ui/page.tsx';
import { SecretDialog } from '../ui/secret-dialog.tsx';
import { Failed } from '../ui/states.tsx';
import { Time } from '../ui/time.tsx';

export function SecondFactor({ account }: { account: Account }): ReactNode {
  const [codes, setCodes] = useState<string[] | null>(null);
  return (
    <Section title="Second factor">
      <Text>
        {account.twoFactor
          ? 'Your password alone is not enough to sign in.'
          : 'Anybody who knows your password can sign in. A second factor prevents that.'}
      </Text>
      <Totp on={account.totp} showCodes={setCodes} />
      <Passkeys showCodes={setCodes} />
      {account.twoFactor ? <Renew left={account.recoveryCodes} showCodes={setCodes} /> : null}
      <SecretDialog opened={codes !== null} onClose={() => setCodes(null)} title="Your recovery codes" secret>
        <Stack>
          <Text>
            The codes are shown only once. Each code works once, if you have lost your other factors.
          </Text>
          <Code block tabIndex={0} aria-label="Recovery codes">
            {codes?.join('\n')}
          </Code>
          <Copy value={codes?.join('\n') ?? ''} label="Copy all" />
        </Stack>
      </SecretDialog>
    </Section>
  );
}

type ShowCodes = (codes: string[] | null) => void;

function Totp({ on, showCodes }: { on: boolean; showCodes: ShowCodes }): ReactNode {
  const [code, setCode] = useState('');
  const begin = useChange('account.beginTotp');
  const confirm = useChange('account.confirmTotp', {
    done: ({ recoveryCodes }) => {
      begin.reset();
      setCode('');
      showCodes(recoveryCodes);
    },
  });
  const remove = useChange('account.removeTotp');
  if (on)
    return (
      <Group>
        <Text>One-time codes are on.</Text>
        <ConfirmButton
          label="Turn them off"
          title="Turn one-time codes off?"
          pending={remove.isPending}
          error={remove.error}
          onConfirm={() => remove.mutateAsync({})}
        >
          Sign-in no longer asks for codes of your authenticator app.
        </ConfirmButton>
      </Group>
    );
  return (
    <Stack gap="xs">
      {begin.data ? (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            confirm.mutate({ code });
          }}
        >
          <Stack gap="xs">
            <Text>Scan this with your authenticator app, then type the code that it shows.</Text>
            <img
              src={`data:image/svg+xml,${encodeURIComponent(renderSVG(begin.data.uri))}`}
              alt="The secret of your one-time codes as a QR code"
              width={180}
              height={180}
            />
            <Text size="sm">
              Without a camera: <Code>{begin.data.secret}</Code> <Copy value={begin.data.secret} />
            </Text>
            <Group align="flex-end">
              <TextInput
                label="Code"
                inputMode="numeric"
                autoComplete="one-time-code"
                required
                value={code}
                onChange={(event) => setCode(event.currentTarget.value)}
              />
              <Button type="submit" loading={confirm.isPending}>
                Turn on
              </Button>
            </Group>
          </Stack>
        </form>
      ) : (
        <Group>
          <Button variant="default" loading={begin.isPending} onClick={() => begin.mutate({})}>
            Set up one-time codes
          </Button>
        </Group>
      )}
      {(begin.error ?? confirm.error) ? <Failed error={(begin.error ?? confirm.error)!} /> : null}
    </Stack>
  );
}

function Passkeys({ showCodes }: { showCodes: ShowCodes }): ReactNode {
  const passkeys = useCall('account.listPasskeys', {});
  const [name, setName] = useState('');
  const [refused, setRefused] = useState(false);
  const options = useChange('account.passkeyOptions');
  const add = useChange('account.addPasskey', {
    done: ({ recoveryCodes }) => {
      setName('');
      if (recoveryCodes) showCodes(recoveryCodes);
    },
  });
  const remove = useChange('account.removePasskey');
  const create = async (): Promise<void> => {
    setRefused(false);
    const response = await createPasskey(await options.mutateAsync({}));
    if (response) add.mutate({ name, response });
    else setRefused(true);
  };
  return (
    <Stack gap="xs">
      {passkeys.data?.data.map((passkey) => (
        <Group key={passkey.id}>
          <Text>
            Passkey <b>{passkey.name}</b>, last used <Time at={passkey.lastUsedAt} />
          </Text>
          <ConfirmButton
            label="Remove"
            title={`Remove the passkey ${passkey.name}?`}
            pending={remove.isPending}
            error={remove.error}
            onConfirm={() => remove.mutateAsync({ passkeyId: passkey.id })}
          >
            You can no longer sign in with it.
          </ConfirmButton>
        </Group>
      ))}
      {passkeysWork() ? (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            // A refusal of the service is shown below; the browser's own is `refused`.
            create().catch(() => undefined);
          }}
        >
          <Group align="flex-end">
            <TextInput
              label="Name of a new passkey"
              placeholder="this laptop"
              required
              maxLength={100}
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
            />
            <Button type="submit" variant="default" loading={options.isPending || add.isPending}>
              Add a passkey
            </Button>
          </Group>
        </form>
      ) : null}
      {refused ? (
        <Alert color="yellow" variant="light" role="status">
          The browser created no passkey. Try again, or use one-time codes.
        </Alert>
      ) : null}
      {(options.error ?? add.error) ? <Failed error={(options.error ?? add.error)!} /> : null}
    </Stack>
  );
}

function Renew({ left, showCodes }: { left: number; showCodes: ShowCodes }): ReactNode {
  const renew = useChange('account.renewRecoveryCodes', {
    done: ({ recoveryCodes }) => showCodes(recoveryCodes),
  });
  return (
    <Group>
      <Text>{left} recovery codes are left.</Text>
      <ConfirmButton
        label="Create new codes"
        title="Create new recovery codes?"
        pending={renew.isPending}
        error={renew.error}
        onConfirm={() => renew.mutateAsync({})}
      >
        Your current codes stop working.
      </ConfirmButton>
    </Group>
  );
}
