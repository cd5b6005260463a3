import { Alert, Button, Group, NativeSelect, Stack, Textarea } from '@mantine/core';
import { useState } from 'react';
import type { ReactNode } from 'react';
import type { Output } from '@parley/protocol';
import { useCall, useChange } from '../api/hooks.ts';
import { useMay, useProductionName } from '../api/roles.ts';
import { ConfirmButton, useTypedName } from '../ui/confirm.tsx';
import { Page, Section } from '../ui/page.tsx';
import { Empty, Failed, Loading } from '../ui/states.tsx';
import { Time } from '../ui/time.tsx';

type PushProviderName = Output<'push.listCredentials'>['data'][number]['provider'];

const providers: Record<PushProviderName, string> = {
  fcm: 'Firebase Cloud Messaging (Android)',
  apns: 'Apple Push Notification service',
  expo: 'Expo',
  webpush: 'Web Push (browsers)',
};

export default function Push(): ReactNode {
  const credentials = useCall('push.listCredentials', {});
  const remove = useChange('push.removeCredentials');
  const may = useMay('push.setCredentials');
  if (credentials.error) return <Failed error={credentials.error} retry={() => void credentials.refetch()} />;
  if (!credentials.data) return <Loading what="push credentials" />;
  return (
    <Page title="Push" call={['push.listCredentials', {}]}>
      <Section title="Credentials">
        {credentials.data.data.length === 0 ? (
          <Empty title="No provider is set up">Members who are not connected get no push.</Empty>
        ) : null}
        {credentials.data.data.map(({ provider, setAt }) => (
          <Group key={provider} justify="space-between">
            <span>
              {providers[provider]}, set <Time at={setAt} />
            </span>
            {may ? (
              <ConfirmButton
                label="Remove"
                title={`Remove the credentials for ${providers[provider]}?`}
                pending={remove.isPending}
                error={remove.error}
                onConfirm={() => remove.mutateAsync({ provider })}
              >
                Parley sends no more pushes through this provider.
              </ConfirmButton>
            ) : null}
          </Group>
        ))}
      </Section>
      {may ? <SetCredentials known={credentials.data.data.map(({ provider }) => provider)} /> : null}
    </Page>
  );
}

function SetCredentials({ known }: { known: PushProviderName[] }): ReactNode {
  const [provider, setProvider] = useState<PushProviderName>('fcm');
  const [text, setText] = useState('');
  const [malformed, setMalformed] = useState(false);
  const replaces = known.includes(provider);
  const production = useProductionName();
  const { ready, field, clear } = useTypedName(replaces ? production : undefined);
  const set = useChange('push.setCredentials', {
    done: () => {
      setText('');
      clear();
    },
  });
  const submit = (): void => {
    let credentials: unknown;
    try {
      credentials = JSON.parse(text);
    } catch {
      return setMalformed(true);
    }
    setMalformed(false);
    set.mutate({ provider, credentials: credentials as Record<string, unknown> });
  };
  return (
    <Section title="Set or replace">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (ready) submit();
        }}
      >
        <Stack maw={600}>
          <NativeSelect
            label="Provider"
            data={Object.entries(providers).map(([value, label]) => ({ value, label }))}
            value={provider}
            onChange={({ currentTarget: { value } }) => setProvider(value as PushProviderName)}
          />
          <Textarea
            label="Credentials as JSON"
            description="The file from the provider. The service encrypts it and never shows it again."
            autosize
            minRows={4}
            maxRows={12}
            required
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
            error={malformed ? 'This is not JSON.' : null}
          />
          {field}
          {set.error ? <Failed error={set.error} /> : null}
          {set.isSuccess ? (
            <Alert color="teal" variant="light" role="status">
              The credentials are set.
            </Alert>
          ) : null}
          <Group>
            <Button
              type="submit"
              {...(replaces ? { color: 'red' } : {})}
              disabled={!ready}
              loading={set.isPending}
            >
              {replaces ? 'Replace' : 'Set'}
            </Button>
          </Group>
        </Stack>
      </form>
    </Section>
  );
}
