/** Parser for the Prometheus text format of `/metrics`. */

export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

/** Samples of a metrics page. Comments and other lines are skipped. */
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

/**
 * Upper bound in seconds of the histogram bucket that contains the quantile. Infinite above the last bound.
 */
export function quantile(samples: Sample[], name: string, part: number): number | undefined {
  const total = valueOf(samples, `${name}_count`);
  if (total === undefined || total === 0) return undefined;
  const buckets = samples.filter((sample) => sample.name === `${name}_bucket`);
  const bound = buckets.find((bucket) => bucket.value >= total * part)?.labels['le'];
  return bound === undefined || bound === '+Inf' ? Infinity : Number(bound);
}
