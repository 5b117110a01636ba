import { useQueryClient } from '@tanstack/react-query'

import { experimentKey, experimentQuery } from '@/api/queries'
import type { Experiment } from '@/api/types'
import { useAction } from '@/api/use-action'

/** Changes an experiment and shows the server's answer. {@link useAction} reports a failure. */
export function useLifecycleAction<In = void>(id: string, move: (input: In) => Promise<Experiment>, toasted?: string) {
  const queryClient = useQueryClient()
  const options = { changes: experimentKey(id), ...(toasted !== undefined && { toasted }) }
  return useAction(async (input: In) => {
    queryClient.setQueryData(experimentQuery(id).queryKey, await move(input))
  }, options)
}
