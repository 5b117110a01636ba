import { QueryCache, QueryClient } from '@tanstack/react-query'

import { ApiProblem, toProblem } from '@/api/problem'
import { infoQuery } from '@/api/queries'

const RETRIES = 2

/** The page's one query cache. It notices when the session has ended and when the server is away. */
export function dashboardQueries(): QueryClient {
  let away = false
  const queryClient = new QueryClient({
    queryCache: new QueryCache({
      onSuccess: () => {
        away = false
      },
      onError: (error, query) => {
        const { status } = toProblem(error)
        away = status === 0
        if (status === 401 && query.queryKey[0] !== 'info') void queryClient.invalidateQueries(infoQuery)
      },
    }),
    defaultOptions: { queries: { retry: (failures, error) => failures < RETRIES && isWorthwhile(error, away) } },
  })
  return queryClient
}

/** A refused request would be refused again. A server that is away is only tried at each query's own interval. */
function isWorthwhile(error: Error, away: boolean): boolean {
  if (!(error instanceof ApiProblem)) return true
  return error.status === 0 ? !away : error.status >= 500
}
