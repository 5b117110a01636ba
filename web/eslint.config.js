import { readdirSync } from 'node:fs'
import { basename } from 'node:path'

import js from '@eslint/js'
import hooks from 'eslint-plugin-react-hooks'
import { defineConfig, globalIgnores } from 'eslint/config'
import ts from 'typescript-eslint'

const LAYERS = ['lib', 'api', 'features', 'app']

/** A file of `layer` may import its own layer and those before it: lib → api → features → app. */
function oneWay(layer, above) {
  return {
    files: [`src/${layer}/**`],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            { regex: `^@/(${above.join('|')})(/|$)`, message: 'Imports go one way: lib → api → features → app.' },
            { regex: '^\\.\\./', message: 'Import a neighbour by ./ and everything else by @/.' },
          ],
        },
      ],
    },
  }
}

/** Features never import each other: what two of them need belongs to lib or api. */
const FEATURES = readdirSync('src/features')

const kebabCase = {
  create: (context) => ({
    Program(node) {
      const name = basename(context.filename)
      if (!/^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+)+$/.test(name)) {
        context.report({ node, message: `${name} is not kebab-case.` })
      }
    },
  }),
}

export default defineConfig([
  globalIgnores(['node_modules', 'src/api/schema.d.ts']),
  js.configs.recommended,
  {
    plugins: { local: { rules: { 'kebab-case': kebabCase } } },
    rules: {
      'local/kebab-case': 'error',
      'max-lines': ['error', { max: 250 }],
    },
  },
  {
    files: ['scripts/**', 'eslint.config.js'],
    languageOptions: { globals: { console: 'readonly', process: 'readonly' } },
  },
  {
    files: ['public/**'],
    languageOptions: {
      sourceType: 'script',
      globals: { document: 'readonly', localStorage: 'readonly', matchMedia: 'readonly' },
    },
  },
  {
    files: ['**/*.{ts,tsx}'],
    extends: [ts.configs.strictTypeChecked, ts.configs.stylisticTypeChecked, hooks.configs.flat.recommended],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
    },
  },
  ...LAYERS.slice(0, -1).map((layer, index) => oneWay(layer, LAYERS.slice(index + 1))),
  ...FEATURES.map((feature) =>
    oneWay(`features/${feature}`, [
      'app',
      ...FEATURES.filter((other) => other !== feature).map((f) => `features/${f}`),
    ]),
  ),
])
