/*
 * The schema: which keys there are, what they take and where it goes. One table drives reading, overriding,
 * printing and the messages; a new setting is a member of struct config and a row in schema.c, which also says what it means.
 */
#ifndef CONFIG_SCHEMA_H
#define CONFIG_SCHEMA_H

#include "config/config.h"
#include "config/yaml.h"

enum key_type {
	KEY_BOOL = 1, /* bool */
	KEY_INT,      /* int */
	KEY_INT64,    /* int64_t */
	KEY_COUNT,    /* size_t */
	KEY_NUMBER,   /* double */
	KEY_WORD,     /* int, one of `words` */
	KEY_TEXT,     /* const char * */
	KEY_PATH,     /* const char *, relative to the file */
	/* lists: a YAML list, one value, or values with commas between them */
	KEY_INTS,    /* struct config_ints */
	KEY_NUMBERS, /* struct config_numbers */
	KEY_PAIR,    /* double[2] */
	KEY_BOOLS,   /* struct config_ints */
	KEY_WORDS,   /* struct config_ints */
	KEY_TEXTS,   /* struct config_strings */
	KEY_ALLOWED, /* struct config_allowed, bits of `words` */
	/* others */
	KEY_MAP,     /* `keys`, which count their offsets from here */
	KEY_CUSTOM,  /* `custom` reads and prints it */
	KEY_UNUSED,  /* any value; a note says that it does nothing, and `why` */
	KEY_REFUSED, /* an error says `why` */
};

struct word {
	const char *name;
	int value;
	const char *refused; /* why it cannot be had; NULL: it can */
};

/* Tables that are made for each configuration, from the recipes and the calibration algorithms. */
enum key_maker { KEYS_RECIPES = 1, KEYS_SPACE, KEYS_FINETUNE_SEARCH, KEY_MAKERS };

struct reader;
struct printer;
struct key;

struct custom {
	enum fettle_status (*read)(struct reader *r, const struct key *k, const struct yaml *y, void *field);
	void (*print)(struct printer *p, const struct key *k, const void *field);
};

/* Tables end with a key without a name; words likewise. */
struct key {
	const char *name;
	enum key_type type;
	size_t offset;   /* of the member, from the table's base */
	double min, max; /* of numbers, when max > min */
	bool alias;      /* another name for what a key without this flag sets: not printed */
	bool yields; /* of an alias: where the other name is there too, that one counts, and a note says so */
	bool percent;  /* of numbers: "1%" is 0.01 */
	bool duration; /* of numbers: seconds; "10m" is 600 */
	bool empty;    /* of lists: may be empty */
	bool secret;   /* not printed */
	bool quiet;    /* printed only where it is set */
	/* Every setting decides what a run finds, and is part of config_identity(), but for those that are ... */
	bool incidental; /* ... limits, places and names: another value is fine when a run is resumed */
	bool open;       /* unless it is set, the search or the metric chooses: that it was set decides too */
	unsigned used;   /* CONFIG_*: the commands in which it has an effect; 0: as the map it is in */
	const char *strategies; /* that read it, in one text; NULL: it is not about the strategy */
	const char *why;        /* it does nothing, or is refused */
	const char *help;       /* what it means; not of aliases and of what has `why` */
	const char *example;    /* where the default shows too little; NULL: the default does */
	const char *whole;      /* of a map: a scalar in its place is the value of this key */
	size_t also;            /* of an alias: this int is set too, to also_value; 0: none */
	int also_value;
	const struct word *words;
	const char *otherwise; /* of a word: the one that stands for those not listed, ... */
	const char *checked;   /* ... unless they begin with this */
	const struct key *keys;
	enum key_maker made;         /* of a map: it has its keys from key_table() instead */
	const struct recipe *recipe; /* of custom_number: whose number it is */
	const struct custom *custom;
};

extern const struct key config_keys[];     /* base: struct config */
extern const struct key constraint_keys[]; /* base: struct config_constraint */
extern const struct word device_words[];
extern const struct custom custom_dataset, custom_transforms, custom_metric, custom_constraints, custom_pairs,
	custom_number, custom_list_of_numbers, custom_label_balance;

/* The keys of a map. */
const struct key *key_table(const struct config *c, const struct key *map);
void make_keys(const struct key *out[KEY_MAKERS], struct arena *arena);

/* Calls `visit` for every key that holds a value, by its printed name, with the commands that use it. */
void config_each(const struct config *c,
		 void (*visit)(void *self, const char *path, const struct key *k, unsigned used), void *self);

void config_defaults(struct config *c, struct arena *arena);

#endif
