import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'

import { LISTS_KEY } from '@/api/experiment-list'
import { experimentKey } from '@/api/queries'
import type { ListedExperiment } from '@/api/types'
import { dismissToast, toastFailure } from '@/lib/toasts'

import { type BulkAction, runForAll, togetherProblem } from './bulk-actions'

/** Does something for many experiments; those for which it failed are told in one toast, each with its reason. */
export function useBulk() {
  const queryClient = useQueryClient()
  const [running, setRunning] = useState<string>()
  const run = async (label: string, experiments: readonly ListedExperiment[], action: BulkAction['run']) => {
    setRunning(label)
    const [first, ...others] = await runForAll(experiments, action)
    setRunning(undefined)
    if (first) toastFailure(label, togetherProblem([first, ...others], experiments.length))
    else dismissToast(label)
    for (const { id } of experiments) void queryClient.invalidateQueries({ queryKey: experimentKey(id) })
    await queryClient.invalidateQueries({ queryKey: LISTS_KEY })
    return [first, ...others].flatMap((failure) => (failure ? [failure.experiment.id] : []))
  }
  return { running, run }
}
