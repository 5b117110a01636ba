// Builds the dashboard and its compressed copies into ../api/ferret_api/static.
import { build } from 'vite'

import { compress } from './compress.mjs'

await build()
compress('../api/ferret_api/static')
