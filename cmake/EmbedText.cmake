# A C source with the text of a file, zero-terminated: cmake -D INPUT= -D OUTPUT= -D NAME= -P
file(READ ${INPUT} HEX HEX)
string(REGEX REPLACE "(..)" "0x\\1," BYTES "${HEX}")
file(WRITE ${OUTPUT} "extern const char ${NAME}[];\nconst char ${NAME}[] = {\n${BYTES}0};\n")
