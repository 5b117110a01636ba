import { useQueryClient } from '@tanstack/react-query'

import { experimentKey, experimentQuery } from '@/api/queries'
import type { Experiment } from '@/api/types'
import { useAction } from '@/api/use-action'

/** Changes an experiment; the page then shows it as the server answered. A failure is told as {@link useAction} says. */
export function useLifecycleAction<In = void>(id: string, move: (input: In) => Promise<Experiment>, toasted?: string) {
  const queryClient = useQueryClient()
  const options = { changes: experimentKey(id), ...(toasted !== undefined && { toasted }) }
  return useAction(async (input: In) => {
    queryClient.setQueryData(experimentQuery(id).queryKey, await move(input))
  }, options)
}
