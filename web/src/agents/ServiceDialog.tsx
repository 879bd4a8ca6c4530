import { useQueryClient } from '@tanstack/react-query';
import { useState, type FormEvent } from 'react';
import { apiRequest } from '../api/http';
import type { ServiceAgent, ServiceAgentBody, ServiceAgentType } from '../generated/api';
import { Problem } from '../settings/Block';
import { useSubmit } from '../settings/useSubmit';
import { text } from '../text';
import { Dialog, FormButtons } from '../ui/dialog';
import { Choice, Field, TextArea } from '../ui/field';

const TYPES = (['openai-chat', 'anthropic-chat'] as const).map((value) => ({ value, label: text.services.kinds[value] }));
const BASE_URLS = { 'openai-chat': 'https://api.openai.com/v1', 'anthropic-chat': 'https://api.anthropic.com/v1' } as const;

/** Adds or edits a model of the hub. A saved API key is not shown, and is kept when the field stays empty. */
export function ServiceDialog({ service, onClose }: { service?: ServiceAgent; onClose: () => void }) {
  const queries = useQueryClient();
  const { attempt, problem, isBusy } = useSubmit();
  const [type, setType] = useState<ServiceAgentType>(service?.type ?? 'openai-chat');
  const config = service?.config;
  const save = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    void attempt(async () => {
      const path = service === undefined ? '/api/service-agents' : `/api/service-agents/${encodeURIComponent(service.id)}`;
      await apiRequest(service === undefined ? 'POST' : 'PUT', path, bodyOf(form, type));
      await queries.invalidateQueries({ queryKey: ['services'] });
      await queries.invalidateQueries({ queryKey: ['agents'] });
      onClose();
    });
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title={service === undefined ? text.services.add : text.services.edit}
      lead={text.services.lead}
      className="w-[min(34rem,calc(100vw-2rem))]"
    >
      <form className="space-y-4" onSubmit={save}>
        <Field
          label={text.agents.name}
          name="name"
          placeholder={text.services.namePlaceholder}
          defaultValue={service?.name}
          maxLength={100}
          autoFocus
          required
        />
        <Choice label={text.agents.kind} value={type} options={TYPES} onChange={setType} />
        <div className="grid gap-4 sm:grid-cols-2">
          <Field label={text.agents.model} name="model" defaultValue={config?.model} required />
          <Field label={text.services.fallback} name="fallback" defaultValue={config?.fallbackModel} />
        </div>
        <Field
          label={text.services.baseUrl}
          hint={text.services.baseUrlHint}
          name="address"
          placeholder={BASE_URLS[type]}
          defaultValue={config?.baseUrl}
        />
        <Field
          label={text.services.apiKey}
          hint={config?.apiKey === undefined ? undefined : text.services.apiKeySaved}
          name="key"
          type="password"
          autoComplete="off"
        />
        <TextArea label={text.services.systemPrompt} name="prompt" defaultValue={config?.systemPrompt} maxLength={10_000} />
        <Problem>{problem}</Problem>
        <FormButtons isBusy={isBusy} onClose={onClose} />
      </form>
    </Dialog>
  );
}

function bodyOf(form: FormData, type: ServiceAgentType): ServiceAgentBody {
  const written = (name: string) => String(form.get(name)).trim();
  const key = written('key');
  return {
    name: written('name'),
    type,
    config: {
      baseUrl: written('address') === '' ? BASE_URLS[type] : written('address'),
      model: written('model'),
      fallbackModel: written('fallback') === '' ? null : written('fallback'),
      systemPrompt: written('prompt') === '' ? null : written('prompt'),
      ...(key !== '' && { apiKey: key }),
    },
  };
}
