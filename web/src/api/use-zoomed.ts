import { useQueries, type UseQueryResult } from '@tanstack/react-query'
import { useMemo } from 'react'

import type { Range, XAxis } from '@/lib/charts/chart-data'
import { type Rounds, spliced, thinnedRounds } from '@/lib/charts/zoom'

import { metricsQuery } from './queries'
import type { MetricSeriesList } from './types'

interface Known {
  id: string
  curves: MetricSeriesList | undefined
  /** When the experiment started. */
  start: string
}

interface Asked extends Known {
  rounds: Rounds | undefined
}

/** The curves of experiments. Downsampled curves get finer points in the visible part of the axis. */
export function useZoomed(
  known: readonly Known[],
  axis: XAxis,
  zoom: Range | undefined,
): (MetricSeriesList | undefined)[] {
  const asked = useMemo(
    () =>
      known.map((run): Asked => {
        const rounds = zoom && run.curves && thinnedRounds(run.curves.series, axis, run.start, zoom)
        return { ...run, rounds }
      }),
    [known, axis, zoom],
  )
  const fine = useQueries({
    queries: asked.map(({ id, rounds }) => ({ ...metricsQuery(id, rounds), enabled: rounds !== undefined })),
    combine: dataOf,
  })
  return useMemo(
    () => asked.map(({ curves, rounds }, index) => (curves && rounds ? finer(curves, fine[index], rounds) : curves)),
    [asked, fine],
  )
}

/** Declared once: TanStack Query keeps what it returns as long as nothing in it changes. */
function dataOf<T>(results: UseQueryResult<T>[]): (T | undefined)[] {
  return results.map(({ data }) => data)
}

function finer(coarse: MetricSeriesList, fine: MetricSeriesList | undefined, rounds: Rounds): MetricSeriesList {
  if (fine === undefined) return coarse
  return { rounds_per_point: fine.rounds_per_point, series: spliced(coarse.series, fine.series, rounds) }
}
