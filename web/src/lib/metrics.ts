import catalog from '@protocol/metrics.json'

import { formatBytes, formatCount, formatDigits, formatLoss, formatPercent, formatSeconds } from './format'

export type MetricName = keyof typeof catalog

const FORMATS: Record<string, (value: number) => string> = {
  'nats per token': formatLoss,
  percent: formatPercent,
  count: formatCount,
  ratio: (value) => formatDigits(value, 2),
  s: formatSeconds,
  '1/s': (value) => formatDigits(value, 3),
  B: formatBytes,
}

export const METRICS: Record<MetricName, { label: string; unit: string; better: string | null; source: string }> =
  catalog

/** A value of the metric in its unit, as in every table, panel and tooltip; a dash for a missing value. */
export function formatMetric(name: MetricName, value: number | undefined): string {
  if (value === undefined) return '–'
  return FORMATS[METRICS[name].unit]?.(value) ?? String(value)
}
