/** What `/metrics` says, as far as people want to know it at a glance. */

export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

/** The lines that Prometheus reads. */
export function samplesIn(page: string): Sample[] {
  return page.split('\n').flatMap((line) => {
    const found = /^([a-z_:][\w:]*)(?:\{(.*)\})? (\S+)$/i.exec(line);
    if (found === null) return [];
    const [, name = '', labels = '', value] = found;
    const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, label = '', text = '']): [string, string] => [label, text]);
    return [{ name, labels: Object.fromEntries(pairs), value: Number(value) }];
  });
}

export function valueOf(samples: Sample[], name: string): number | undefined {
  return samples.find((sample) => sample.name === name)?.value;
}

/** The bound under which so large a part of what was measured lies, in seconds; what lies above all bounds is infinite. */
export function quantile(samples: Sample[], name: string, part: number): number | undefined {
  const total = valueOf(samples, `${name}_count`);
  if (total === undefined || total === 0) return undefined;
  const buckets = samples.filter((sample) => sample.name === `${name}_bucket`);
  const bound = buckets.find((bucket) => bucket.value >= total * part)?.labels['le'];
  return bound === undefined || bound === '+Inf' ? Infinity : Number(bound);
}
