import { type QueryClient, useQueries, useQueryClient, type UseQueryResult } from '@tanstack/react-query'
import { useEffect, useMemo, useRef } from 'react'

import { type ApiProblem, isAway, toProblem } from '@/api/problem'
import { experimentQuery, metricsQuery, partKey } from '@/api/queries'
import { type Experiment, isFinished } from '@/api/types'
import { useZoomed } from '@/api/use-zoomed'
import type { Range } from '@/lib/charts/chart-data'

import type { Run } from './compared-runs'
import type { Chosen, CompareAxis } from './url-state'

export interface Missing {
  id: string
  problem: ApiProblem
}

/** The experiments loaded so far, and the ones that failed to load. */
interface Runs {
  runs: Run[]
  missing: Missing[]
  /** True while an answer is still missing. */
  pending: boolean
}

/** Fetches experiments and curves, and polls the running ones: a stream for each would be too many. */
export function useRuns(chosen: readonly Chosen[], axis: CompareAxis, zoom: Range | undefined): Runs {
  const pause = pollMilliseconds(chosen.length)
  const shown = useQueries({
    queries: chosen.map(({ id }) => ({
      ...experimentQuery(id),
      refetchInterval: ({ state: { data, error } }: { state: { data: Experiment | undefined; error: unknown } }) =>
        (data === undefined ? isAway(error) : !isFinished(data.state)) && pause,
    })),
    combine: dataAndErrors,
  })
  // Curves are requested after their experiment, so they are never older than it.
  const curves = useQueries({
    queries: chosen.map(({ id }, index) => ({ ...metricsQuery(id), enabled: shown.data[index] !== undefined })),
    combine: dataAndErrors,
  })
  useFreshCurves(shown.data)
  const known = useMemo(
    () =>
      chosen.map(({ id }, index) => {
        const { started_at: started, created_at: created } = shown.data[index] ?? {}
        return { id, curves: curves.data[index], start: started ?? created ?? '' }
      }),
    [chosen, shown, curves],
  )
  const zoomed = useZoomed(known, axis, zoom)

  return useMemo(() => {
    const runs = chosen.flatMap(({ id, place }, index): Run[] => {
      const experiment = shown.data[index]
      const { series = [], rounds_per_point: roundsPerPoint = 1 } = zoomed[index] ?? {}
      return experiment === undefined ? [] : [{ id, place, experiment, series, roundsPerPoint }]
    })
    const missing = chosen.flatMap(({ id }, index): Missing[] => {
      const error = shown.data[index] === undefined ? shown.errors[index] : null
      return error == null ? [] : [{ id, problem: toProblem(error) }]
    })
    const awaited = (index: number) =>
      shown.data[index] === undefined
        ? shown.errors[index] === null
        : curves.data[index] === undefined && curves.errors[index] === null
    return { runs, missing, pending: chosen.some((_, index) => awaited(index)) }
  }, [chosen, shown, curves, zoomed])
}

/** Declared once: TanStack Query keeps what it returns as long as nothing in it changes. */
function dataAndErrors<T>(results: UseQueryResult<T>[]): { data: (T | undefined)[]; errors: (Error | null)[] } {
  return { data: results.map(({ data }) => data), errors: results.map(({ error }) => error) }
}

/** Refetches curves only when the experiment shows that they have grown. */
function useFreshCurves(experiments: readonly (Experiment | undefined)[]): void {
  const queryClient = useQueryClient()
  const seen = useRef(new Map<string, string>())
  useEffect(() => {
    for (const experiment of experiments) {
      if (experiment !== undefined) refreshIfGrown(queryClient, seen.current, experiment)
    }
  }, [queryClient, experiments])
}

function refreshIfGrown(queryClient: QueryClient, seen: Map<string, string>, experiment: Experiment): void {
  const stamp = metricsStamp(experiment)
  const before = seen.get(experiment.id)
  seen.set(experiment.id, stamp)
  if (before === undefined || before === stamp) return
  void queryClient.invalidateQueries({ queryKey: partKey(experiment.id, 'metrics') })
}

const AT_LEAST = 5000
const EACH = 1000

/** Milliseconds between two requests for the same experiment. All experiments together cause one request a second at most. */
export function pollMilliseconds(experiments: number): number {
  return Math.max(AT_LEAST, experiments * EACH)
}

/** Changes when the experiment's curves have. */
export function metricsStamp({ state, round, metrics }: Experiment): string {
  return JSON.stringify([state, round, metrics])
}
